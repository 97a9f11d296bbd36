"""Every number in the README and in the cards that comes from a shipped file is the one of that file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from programs import main

from figures.base.labels import number

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "assets" / "models"
README, ABOUT, DOCS = ROOT / "README.md", MODELS / "README.md", ROOT / "docs"


@cache
def read(name: str) -> Any:
    return json.loads((MODELS / name).read_text())


@cache
def words(path: Path) -> str:
    """The text of a file with single spaces."""
    return " ".join(path.read_text().split())


def gap(found: Any, form: str = "+.1f") -> str:
    """A difference with its interval, as tables give it."""
    value, low, high = (number(found["difference"][end], form) for end in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def percent(share: float, form: str = ".0f") -> str:
    return format(100 * share, form)


def scores(name: str) -> Any:
    return next(each for each in read("en-de/scores.json")["translation"] if each["name"] == name)


def bleu(name: str) -> str:
    """Greedy and, if it was measured, beam."""
    found = scores(name)
    return " / ".join(f"{found[how]['bleu']:.1f}" for how in ("greedy", "beam") if how in found)


def aligned(name: str, row: str) -> str:
    found = next(each for each in read("en-de/scores.json")["alignment"] if each["name"] == name)
    return percent(found["diagonal"] if row == "diagonal" else found[row]["aer"], ".1f")


def heads_over_sentences() -> Iterator[str]:
    large, small = (
        [aligned(name, row) for row in ("read", "diagonal")] for name in ("Europarl", "own sample")
    )
    yield f"an alignment error of {large[0]} % on 100 pairs of Europarl"
    yield f"(the diagonal {large[1]} %), and of {small[0]} % on the 24 bundled pairs ({small[1]} %)."


def measured() -> Iterator[str]:
    yield f"| BLEU of `en-de` on Tatoeba test, greedy / beam of 4 | – | {bleu('Tatoeba test')} |"
    score = bleu("FLORES-200 devtest")
    yield f"| BLEU on FLORES-200 devtest, long sentences, greedy / beam of 4 | – | {score} |"
    yield f"| BLEU on newstest2014, greedy | – | {bleu('newstest2014')} |"
    yield f"| BLEU on PUD, greedy | – | {bleu('PUD')} |"
    read_by, predicted, diagonal = (aligned("Europarl", row) for row in ("read", "predicted", "diagonal"))
    named = "best head's alignment error, Europarl, by the row that reads"
    yield f"| {named} | diagonal: {diagonal} % | {read_by} % |"
    yield f"| the same, by the row that predicts | diagonal: {diagonal} % | {predicted} % |"


def twins() -> Iterator[str]:
    """The table of positional twins."""
    found = read("positions/results.json")
    none = found["cost"]["models"]["none"]["milliseconds"]
    at = [found["cost"]["lengths"].index(n) for n in (256, 1024)]
    for name in found["models"]:
        if found["models"][name]["other_seed"]:
            continue
        score, levels = found["scores"][name]["bleu"], found["long"]["levels"]
        beside = "–" if name == found["baseline"] else gap(score)
        long = " / ".join(f"{level['models'][name]['bleu']['value']['value']:.1f}" for level in levels)
        order = f"{found['shuffled']['models'][name]['bleu']['value']['value']:.0f}"
        times = found["cost"]["models"][name]["milliseconds"]
        ratios = " / ".join("–" if times[i] is None else f"{round(times[i] / none[i], 2):g}" for i in at)
        cells = f"| {score['value']['value']:.1f} | {beside} | {long} | {order} |"
        yield f"{cells} {ratios} |"


def recurrent() -> Iterator[str]:
    """The table of recurrent twins."""
    found = read("recurrent/results.json")
    for name, model in found["models"].items():
        score = found["scores"][name]["bleu"]
        cells = f"{model['parameters'] / 1e6:.2f} M | {score['value']['value']:.1f} |"
        if name == found["reference"]:
            yield f"| `{name}` (Transformer) | {cells}"
            continue
        groups = found["lengths"]["groups"]
        losses = [number(group["models"][name]["loss"]["difference"]["value"], "+.2f") for group in groups]
        errors = [
            min(gold[row][name]["error"]["value"]["value"] for row in ("predicted", "read"))
            for gold in found["alignments"].values()
        ]
        yield (
            f"| `{name}` | {cells} {gap(score)} | {losses[0]} → {losses[-1]} | "
            f"{' / '.join(percent(error, '.1f') for error in errors)} % |"
        )


def pretraining() -> Iterator[str]:
    compared = read("language/pretraining.json")["compared"]
    gains = {
        percent: " and ".join(
            number(each["models"]["pretrained"]["bleu"]["difference"]["value"], "+.1f")
            for each in compared
            if each["percent"] == percent
        )
        for percent in (1, 10, 100)
    }
    yield f"{gains[1]} with 1 % of the pairs although the loss is lower, {gains[10]} with 10 %"
    yield f"{gains[100]} with all of them"


def bounds(cell: Any, form: str = ".1f", scale: float = 1) -> str:
    value, low, high = (format(scale * cell[end], form) for end in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def language() -> Iterator[str]:
    """The card of the language model: induction."""
    found = read("language/lm-en/language.json")
    yield f"costs {bounds(found['induction']['copying']['gain'], '.2f')} nats per piece less than the first"


ORDERS = {
    "exact effect": "effect",
    "ALTI+": "ALTI+",
    "mean weight of all heads": "weights, all heads",
    "carried": "carried",
    "mean weight of the last layer": "weights, last layer",
    "rollout": "rollout",
    "one random head": "one random head",
    "gradient × input": "gradient × input",
    "chance": "random",
}
"""Measures as docs/measures.md calls them, and as `faithfulness.json` does."""


def near(value: float, form: str = ".2f") -> str:
    """A number as the tables of docs/measures.md give it."""
    return str(round(value)) if value == round(value) or abs(value) < 0.005 else number(value, form)


def unsigned_zero(value: float) -> str:
    return number(value, ".2f") if abs(value) >= 0.005 else "0.00"


def faithful(model: str, name: str) -> Any:
    return read(f"{model}/faithfulness.json")["measures"][name]


def measures() -> Iterator[str]:
    """What docs/measures.md says of the measures, and of heads switched off."""
    models = "en-de", "en-pt"
    for said, name in ORDERS.items():
        cells = [
            f"{-faithful(model, name)['deleted'][0]['value']['value']:.2f}, "
            f"{near(faithful(model, name)['effect']['value'])}"
            for model in models
        ]
        drawn = [unsigned_zero(faithful(model, name)["untrained"]["value"]) for model in models]
        yield f"| {said} | {' | '.join(cells)} | {'' if name == 'random' else ', '.join(drawn) + ' '}|"
    order = "weights, all heads", "carried", "ALTI+", "rollout", "effect", "gradient × input"
    again = [
        [faithful(f"positions/{twin}", name)["retrained"]["value"] for name in order]
        for twin in ("sinusoidal", "postnorm")
    ]
    a, b, c, d, e, f = (f"{value:.2f}" for value in again[0])
    yield f"by weights ({a}), what was carried ({b}), ALTI+ ({c}) and rollout ({d}), but by exact effect"
    yield f"only at {e}, and gradient × input {f}; `postnorm` " + ", ".join(f"{v:.2f}" for v in again[1][:-1])
    yield f"and {again[1][-1]:.2f}. With random weights"
    yield from switched_off()
    yield from weight_and_effect()


def switched_off() -> Iterator[str]:
    """The sentences of docs/measures.md about heads switched off together."""
    for model in ("en-pt", "en-de"):
        whole = read(f"{model}/importance.json")
        found, bleu = whole["pruning"], whole["pruning"]["bleu"]
        heads, ranked, drawn = found["heads"], found["ranked"], found["random"]
        low, high = (end(each[1] for each in drawn) for end in (min, max))
        if model == "en-pt":
            yield f"of `en-pt`'s {heads[-1]}, without {heads[3]} the loss is {ranked[3]:.3f} nats a token"
            yield f"({ranked[0]:.3f} with all), and BLEU over {found['translations']} sentences is"
            yield f"is {bleu['ranked'][3]} as before; without {heads[5]}, {ranked[5]:.3f} and"
            yield f"and {bleu['ranked'][5]}."
            assert bleu["ranked"][0] == bleu["ranked"][3]
            yield f"In three random orders, the loss without {heads[1]} is {low:.3f} to {high:.3f}"
            yield f"{bleu['random'][1]} without {heads[1]}, {bleu['random'][2]} without {heads[2]}."
            assert len(drawn) == 3
        else:
            yield f"Of `en-de`'s {heads[-1]}, without {heads[1]} the loss is {ranked[1]:.3f}"
            yield f"({ranked[0]:.3f} with all) and BLEU over {found['translations']} sentences"
            yield f"falls from {bleu['ranked'][0]} to {bleu['ranked'][1]};"
            yield f"without {heads[2]}, {ranked[2]:.3f} and {bleu['ranked'][2]};"
            yield f"without {heads[1]}, {low:.3f} to {high:.3f} (BLEU {bleu['random'][1]} in the first)"


def weight_and_effect() -> Iterator[str]:
    """The paragraph of docs/measures.md about one head's weights and the effects of its keys."""
    kinds = "encoder", "decoder", "cross"
    own, other = (read(f"{model}/weight_effect.json")["kinds"] for model in ("en-de", "en-pt"))

    def cells(found: Any, what: str, column: str, names: tuple[str, ...] = kinds) -> list[str]:
        return [number(found[kind][what][column]["value"], ".2f") for kind in names]

    sizes = [cells(found, "size", "weight") for found in (own, other)]
    a, b, c = sizes[0]
    yield f"with {a}, {b} and {c} in the encoder, the decoder and cross-attention of `en-de`"
    yield f"({sizes[1][0]}, {sizes[1][1]} and {sizes[1][2]} in `en-pt`)"
    for column, form in (
        ("weight", "rank them with {} and {} in decoder and cross-attention ({} and {} in `en-pt`)"),
        ("other head", "the weights of another head, {} and {} ({} and {})"),
    ):
        yield form.format(*(v for found in (own, other) for v in cells(found, "loss", column, kinds[1:])))
    costs = [
        f"{own['cross']['replaced'][way]['value']:.3f} nats ({other['cross']['replaced'][way]['value']:.3f})"
        for way in ("uniform", "permuted", "nothing")
    ]
    yield f"uniform weights costs a token {costs[0]}, with its own in another order"
    yield f"{costs[1].replace(' nats', '')}, and one that adds nothing {costs[2].replace(' nats', '')}"
    shares = [
        [
            percent(found["encoder"]["share"][what]["content"]["value"])
            for what in ("keys", "weight", "effect")
        ]
        for found in (own, other)
    ]
    yield "Content words, {} % of the keys, get {} % of the encoder's weight and {} %".format(*shares[0])
    yield "(in `en-pt` {} % of the keys, {} % and {} %".format(*shares[1])


def twin_card(folder: str, name: str) -> Iterator[str]:
    """The row of scores on a twin's card."""
    cell = read(f"{folder}/results.json")["scores"][name]
    own, loss = (cell[what]["value"]["value"] for what in ("bleu", "loss"))
    yield f"| Tatoeba test | 2,000 | {own:.2f} |"
    yield f"| {round(loss, 4)}"


def card(folder: str, name: str) -> Path:
    return MODELS / folder / name / "README.md"


STATEMENTS: dict[str, tuple[Path, Callable[[], Iterator[str]]]] = {
    "heads over sentences": (README, heads_over_sentences),
    "measured": (DOCS / "measured.md", measured),
    "positional twins": (DOCS / "positions.md", twins),
    "recurrent twins": (ABOUT, recurrent),
    "pretraining": (ABOUT, pretraining),
    "measures": (DOCS / "measures.md", measures),
    "language model": (MODELS / "language" / "lm-en" / "README.md", language),
} | {
    f"{folder}/{name}": (card(folder, name), partial(twin_card, folder, name))
    for folder in ("positions", "recurrent")
    for name in read(f"{folder}/results.json")["scores"]
    if card(folder, name).exists()
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_numbers_of_a_text_are_those_of_the_shipped_files(name: str) -> None:
    path, sentences = STATEMENTS[name]
    said = list(sentences())
    assert said
    for each in said:
        assert each in words(path), each


def test_the_tables_of_a_card_are_those_that_its_command_writes(tmp_path: Path) -> None:
    copy = shutil.copytree(MODELS / "en-de", tmp_path / "en-de")
    assert main(["card", "--model", str(copy)]) == 0
    assert (copy / "README.md").read_text() == (MODELS / "en-de" / "README.md").read_text()
