"""`python -m transformer align`, `heads`, `survey`, `probes` and `means`: measurements of every head."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from transformer.commands.arguments import model_command, open_model, percent, shared_model, shown, write
from transformer.lenses.alignment import diagonal, score
from transformer.model.sites import AttentionKind
from transformer.storage.description import (
    HEADS_FILE,
    MEANS_FILE,
    PROBES_FILE,
    SURVEY_FILE,
    model_digests,
    weights_hash,
)
from transformer.storage.files import read_json, write_json
from transformer.storage.means import write_means
from transformer.study.facts import CrossAlignments, align_gold, kind_totals, measure_heads
from transformer.study.meanings import ANTONYMS, meanings
from transformer.study.relations import dependencies, pronouns
from transformer.study.shipped import as_json
from transformer.study.statistics import Totals
from transformer.study.survey import Line, Surveyor
from transformer.study.treebanks import read_pronouns, read_trees
from transformer.text.links import GoldPair, read_gold
from transformer.text.pairs import SentencePair, read_pairs
from transformer.trace.value_norms import output_projections
from transformer.training.distributed import Workers
from transformer.translate.translator import Translator
from transformer.what_if.averages import Averager

PROBES = ("encoder", "decoder", "pronouns", "meanings")
"""What `probes` measures, in the order of `probes.json`."""


def add_commands(commands: Any) -> None:
    """Declares the commands on an argparse sub-parser collection."""
    align = model_command(commands, "align", align_file, "score every cross-attention head as a word aligner")
    align.add_argument("--data", required=True, metavar="FILE", help="source<TAB>target<TAB>links lines")
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
    probes = model_command(
        commands,
        "probes",
        write_probes,
        "measure which relations heads follow and write the model's probes.json",
    )
    probes.add_argument(
        "--probes",
        required=True,
        metavar="DIR",
        help="folder with pud-en.conllu.gz, pud-de.conllu.gz, winomt-en.tsv.gz",
    )
    probes.add_argument(
        "--texts", metavar="FILE", help="source<TAB>target lines; sources with antonyms are read too"
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
    probes.add_argument(
        "--only", choices=PROBES, help="measure this part again and keep the rest of probes.json"
    )


def align_file(arguments: argparse.Namespace) -> int:
    """`align`: prints the alignment error of every cross-attention head, with gold targets forced."""
    gold = read_gold(arguments.data)
    with shared_model(arguments) as (translator, workers):
        collected = align_gold(translator, gold, workers)
        if workers.first:
            _write_errors(arguments, collected, gold)
    return 0


def _write_errors(
    arguments: argparse.Namespace, collected: CrossAlignments, gold: Sequence[GoldPair]
) -> None:
    predicting, reading = collected.scores("predicted"), collected.scores("read")
    baseline = score(map(diagonal, gold), gold)
    if not arguments.json:
        print(f"{len(gold)} pairs; diagonal baseline: AER {percent(baseline.aer)}")
        print("layer head      AER  precision   recall   AER of the row that reads the word")
    for layer, heads in enumerate(predicting):
        for head, found in enumerate(heads):
            read = reading[layer][head]
            values = {"layer": layer, "head": head, "aer": found.aer, "precision": found.precision}
            values |= {"recall": found.recall, "aer_read": read.aer, "aer_diagonal": baseline.aer}
            place = f"{layer + 1:5} {head + 1:4}"
            rates = f"{percent(found.aer):>7}  {percent(found.precision):>9}  {percent(found.recall):>7}"
            write(arguments, values, f"{place}  {rates}   {percent(read.aer)}")


def _check_directory(arguments: argparse.Namespace) -> None:
    if not Path(arguments.model).is_dir():
        raise ValueError(f"There is no directory {arguments.model} to write into; see `pull --output`.")


def write_heads(arguments: argparse.Namespace) -> int:
    """`heads`: measures all heads and writes `heads.json` to the model directory."""
    _check_directory(arguments)
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
    command = "python -m transformer heads " + " ".join(
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
    _check_directory(arguments)
    directory, translator = Path(arguments.model), open_model(arguments)
    lines = [Line(pair.source, pair.target) for pair in read_pairs(arguments.data)]
    gold = read_gold(arguments.alignments)
    surveyor = Surveyor(translator, lines, gold)
    for _ in surveyor.run():
        pass
    values = {
        "model": translator.name,
        "command": f"python -m transformer survey --model {arguments.model} --data {arguments.data} "
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
    _check_directory(arguments)
    directory = Path(arguments.model)
    pairs = [(pair.source, pair.target) for pair in read_pairs(arguments.data)]
    averager = Averager(open_model(arguments), pairs)
    for _ in averager.run():
        pass
    about = {
        "data": f"{averager.read} pairs of {shown(arguments.data)}, given targets forced",
        "command": f"python -m transformer means --model {arguments.model} --data {arguments.data}",
        "date": date.today().isoformat(),
    }
    write_means(directory, averager.means(about))
    write(arguments, about, f"Wrote {directory / MEANS_FILE}.")
    return 0


def write_probes(arguments: argparse.Namespace) -> int:
    """`probes`: measures which arcs, antecedents and meanings heads follow, and writes `probes.json`."""
    _check_directory(arguments)
    path = Path(arguments.model) / PROBES_FILE
    command = f"python -m transformer probes --model {arguments.model} --probes {arguments.probes}"
    for name in ("texts", "only"):
        value = getattr(arguments, name)
        command += "" if value is None else f" --{name} {value}"
    when = {"command": command, "date": date.today().isoformat(), "digests": model_digests(path.parent)}
    with shared_model(arguments) as (translator, workers):
        data, parts = _probes(arguments, translator, workers)
        if arguments.only is None:
            values = (
                {"model": translator.name, "data": data} | when | {name: parts[name]() for name in PROBES}
            )
        else:
            known = read_json(path)
            again = known.get("again", {}) | {arguments.only: when}
            values = known | {arguments.only: parts[arguments.only](), "again": again}
        if workers.first:
            write_json(path, values)
            write(arguments, values, f"Wrote {path}.")
    return 0


def _probes(
    arguments: argparse.Namespace, translator: Translator, workers: Workers
) -> tuple[str, dict[str, Callable[[], dict[str, Any]]]]:
    """What the data are, and the experiments of `PROBES`; each runs when it is called."""
    folder = Path(arguments.probes)
    english, german = (read_trees(folder / f"pud-{language}.conllu.gz") for language in ("en", "de"))
    cases, left_out = read_pronouns(folder / "winomt-en.tsv.gz")
    texts = [] if arguments.texts is None else [pair.source for pair in read_pairs(arguments.texts)]
    data = (
        f"encoder: {len(english):,} English sentences of PUD; decoder: the German ones, forced as "
        f"translations of the English ones; pronouns: {len(cases) + left_out:,} sentences of WinoMT"
    )
    words = f"{len(english):,} English sentences of PUD"
    if texts:
        words += f"; antonyms: {len(ANTONYMS)} pairs of words in {shown(arguments.texts)}"
    return data, {
        "encoder": lambda: dependencies(translator, english, AttentionKind.ENCODER, workers),
        "decoder": lambda: dependencies(translator, german, AttentionKind.DECODER, workers),
        "pronouns": lambda: pronouns(translator, cases, left_out, workers),
        "meanings": lambda: {"data": words} | meanings(translator, english, texts, workers),
    }
