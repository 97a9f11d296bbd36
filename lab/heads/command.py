"""`python -m transformer align`, `heads`, `survey` and `means`: measurements of every head."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from lab.heads.facts import kind_totals, measure_heads
from lab.heads.shipped import as_json
from lab.heads.statistics import Totals
from lab.heads.survey import Line, Surveyor
from transformer.commands.arguments import model_command, open_model, shared_model, shown, write
from transformer.lenses.scores.gold_links import align_gold
from transformer.model.sites import AttentionKind
from transformer.storage.description import (
    HEADS_FILE,
    MEANS_FILE,
    SURVEY_FILE,
    model_digests,
    weights_hash,
)
from transformer.storage.files import write_json
from transformer.storage.means import write_means
from transformer.text.links import GoldPair, read_gold
from transformer.text.pairs import SentencePair, read_pairs
from transformer.trace.value_norms import output_projections
from transformer.what_if.averages import Averager


def add_commands(commands: Any) -> None:
    """Declares the commands on an argparse sub-parser collection."""
    heads = model_command(
        commands, "heads", write_heads, "measure all heads and write the model's heads.json"
    )
    heads.add_argument(
        "--data", required=True, metavar="FILE", help="source<TAB>target lines, to measure attention patterns"
    )
    heads.add_argument(
        "--alignments", metavar="FILE", help="source<TAB>target<TAB>links lines, to measure alignment errors"
    )
    heads.add_argument("--sentences", type=int, default=500, help="use the first N pairs of --data")
    survey = model_command(
        commands,
        "survey",
        write_survey,
        "read sentences and write the model's survey.json, which the page Heads shows at once",
    )
    survey.add_argument(
        "--data", required=True, metavar="FILE", help="source<TAB>target lines; targets are forced"
    )
    survey.add_argument(
        "--alignments", required=True, metavar="FILE", help="source<TAB>target<TAB>links lines"
    )
    means = model_command(
        commands,
        "means",
        save_means,
        "measure every head's mean output and write the model's means.safetensors, for ablations",
    )
    means.add_argument(
        "--data", required=True, metavar="FILE", help="source<TAB>target lines; targets are forced"
    )


def check_directory(arguments: argparse.Namespace) -> None:
    """Raises ValueError if the model that the arguments name is no directory to write into."""
    if not Path(arguments.model).is_dir():
        raise ValueError(f"There is no directory {arguments.model} to write into; see `pull --output`.")


def write_heads(arguments: argparse.Namespace) -> int:
    """`heads`: measures all heads and writes `heads.json` to the model directory."""
    check_directory(arguments)
    pairs = read_pairs(arguments.data)[: arguments.sentences]
    gold = read_gold(arguments.alignments) if arguments.alignments else []
    with shared_model(arguments) as (translator, workers):
        projections = output_projections(translator.model)

        def totals(pair: SentencePair) -> dict[AttentionKind, Totals]:
            return kind_totals(translator.force(pair.source, pair.target), projections)

        found = measure_heads(workers.each(totals, pairs), align_gold(translator, gold, workers))
        if workers.first:
            _write_facts(arguments, {"model": translator.name, "data": _read(arguments, pairs, gold)}, found)
    return 0


def _read(arguments: argparse.Namespace, pairs: Sequence[SentencePair], gold: Sequence[GoldPair]) -> str:
    """What `heads` has measured, in words."""
    data = f"patterns: {len(pairs)} pairs of {shown(arguments.data)}, given targets forced"
    if gold:
        data += f"; aer: {len(gold)} pairs of {shown(arguments.alignments)}"
    return data


def _write_facts(arguments: argparse.Namespace, about: dict[str, Any], found: dict[str, Any]) -> None:
    command = "python -m lab heads " + " ".join(
        f"--{name} {value}"
        for name, value in (
            ("model", arguments.model),
            ("data", arguments.data),
            ("alignments", arguments.alignments),
            ("sentences", arguments.sentences),
        )
        if value is not None
    )
    made = {"command": command, "date": date.today().isoformat()}
    values = about | made | {"digests": model_digests(Path(arguments.model))} | found
    write_json(Path(arguments.model) / HEADS_FILE, values)
    write(arguments, values["default"], f"Wrote {Path(arguments.model) / HEADS_FILE}.")


def write_survey(arguments: argparse.Namespace) -> int:
    """`survey`: reads all sentences, as the page Heads does when asked, and writes `survey.json`."""
    check_directory(arguments)
    directory, translator = Path(arguments.model), open_model(arguments)
    lines = [Line(pair.source, pair.target) for pair in read_pairs(arguments.data)]
    gold = read_gold(arguments.alignments)
    surveyor = Surveyor(translator, lines, gold)
    for _ in surveyor.run():
        pass
    values = {
        "model": translator.name,
        "command": f"python -m lab survey --model {arguments.model} --data {arguments.data} "
        f"--alignments {arguments.alignments}",
        "date": date.today().isoformat(),
        "digests": model_digests(directory),
        "weights": weights_hash(directory),
    } | as_json(surveyor.survey(), lines, gold)
    write_json(directory / SURVEY_FILE, values)
    write(arguments, values, f"Wrote {directory / SURVEY_FILE}.")
    return 0


def save_means(arguments: argparse.Namespace) -> int:
    """`means`: averages the output of every head, and writes `means.safetensors`."""
    check_directory(arguments)
    directory = Path(arguments.model)
    pairs = [(pair.source, pair.target) for pair in read_pairs(arguments.data)]
    averager = Averager(open_model(arguments), pairs)
    for _ in averager.run():
        pass
    about = {
        "data": f"{averager.read} pairs of {shown(arguments.data)}, given targets forced",
        "command": f"python -m lab means --model {arguments.model} --data {arguments.data}",
        "date": date.today().isoformat(),
    }
    write_means(directory, averager.means(about))
    write(arguments, about, f"Wrote {directory / MEANS_FILE}.")
    return 0
