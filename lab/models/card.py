"""`python -m lab card`: writes the measured numbers of a model into its card."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.measurement import Json, Model, command
from lab.models.corpora import data_of
from lab.models.familiarity import said
from lenses.words.familiarity import read_measure
from transformer.commands.arguments import percent
from transformer.storage.card import Result, with_results, with_section
from transformer.storage.description import CARD_FILE, SCORES_FILE, model_digests, read_card, weights_hash
from transformer.storage.files import read_json, write_atomically
from transformer.storage.marks import mark

DASH = "–"


@command()
def card(model: Model) -> None:
    """Writes the numbers of scores.json and familiarity.json into the tables and the header of the card."""
    text, values = read_card(model), read_json(model / SCORES_FILE)
    if values.get("digests") != model_digests(model):
        raise ValueError(f"{model / SCORES_FILE} was measured on another model; measure it again.")
    text = with_results(text, values["model"], _results(model, values))
    text = with_section(text, "scores", _score_table(values, weights_hash(model)))
    text = with_section(text, "alignment", _alignment_table(values))
    if (measure := read_measure(model)) is not None:
        told = "\n".join(f"- `{name}`: it {said(found)}." for name, found in measure.found.items())
        text = with_section(text, "familiarity", told)
    write_atomically(model / CARD_FILE, text.encode())
    print(f"Wrote {model / CARD_FILE}.", flush=True)


def _results(model: Path, values: Json) -> list[Result]:
    tests = {test.name: test for test in data_of(model).tests}
    return [
        Result(tests[each["name"]].type, tests[each["name"]].dataset, metric, each["greedy"][metric], how)
        for each in values["translation"]
        if tests[each["name"]].dataset
        for metric, how in (("bleu", "sacreBLEU, greedy"), ("chrf", "chrF, greedy"))
    ]


def _score_table(values: Json, weights: str) -> str:
    head = ("data", "sentences", "BLEU, greedy", "chrF, greedy", "BLEU, beam 4", "chrF, beam 4")
    lines = [_row(*head, "loss, nats per token"), _row(*["---"] * 7)]
    for each in values["translation"]:
        lines.append(_row(each["name"], f"{each['sentences']:,}", *_pair(each["greedy"]), *_beam(each)))
    signed = values["translation"][0]["greedy"]
    told = f"BLEU `{signed['signature']}`, chrF `{signed['chrf_signature']}`."
    return "\n\n".join(["\n".join(lines), told, mark(weights)])


def _pair(found: Mapping[str, Any]) -> tuple[str, str]:
    return f"{found['bleu']:.1f}", f"{found['chrf']:.1f}"


def _beam(each: Json) -> tuple[str, ...]:
    loss = DASH if each["loss"] is None else f"{each['loss']:.2f}"
    return (*(_pair(each["beam"]) if "beam" in each else (DASH, DASH)), loss)


def _alignment_table(values: Json) -> str:
    head = ("links made by hand", "pairs", "best head, by the row that predicts a word")
    lines = [_row(*head, "best head, by the row that reads it", "diagonal"), _row(*["---"] * 5)]
    for each in values["alignment"]:
        heads = (_head(each[rows]) for rows in ("predicted", "read"))
        lines.append(_row(each["name"], f"{each['pairs']}", *heads, percent(each["diagonal"])))
    return "\n".join(lines)


def _head(found: Json) -> str:
    return f"{percent(found['aer'])} (layer {found['layer'] + 1}, head {found['head'] + 1})"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
