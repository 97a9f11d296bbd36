"""`python -m lab probes`: which relations heads follow."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from lab.heads.command import check_directory
from lab.relations.meanings import ANTONYMS, meanings
from lab.relations.relations import dependencies, pronouns
from lab.relations.treebanks import read_pronouns, read_trees
from transformer.commands.arguments import model_command, shared_model, shown, write
from transformer.model.sites import AttentionKind
from transformer.runs.translator import Translator
from transformer.storage.description import PROBES_FILE, model_digests
from transformer.storage.files import read_json, write_json
from transformer.text.pairs import read_pairs
from transformer.training.distributed import Workers

PROBES = ("encoder", "decoder", "pronouns", "meanings")
"""What `probes` measures, in the order of `probes.json`."""


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
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
    probes.add_argument(
        "--only", choices=PROBES, help="measure this part again and keep the rest of probes.json"
    )


def write_probes(arguments: argparse.Namespace) -> int:
    """`probes`: measures which arcs, antecedents and meanings heads follow, and writes `probes.json`."""
    check_directory(arguments)
    path = Path(arguments.model) / PROBES_FILE
    command = f"python -m lab probes --model {arguments.model} --probes {arguments.probes}"
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
