"""`python -m lab backups` and `experiments`: what a model does when it is changed."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import Any

from lab.backups.backup_heads import backup_heads
from lab.backups.pair_effects import pair_effects, to_json
from lab.experiments.answers import answers
from lab.experiments.answers import to_json as to_values
from lab.experiments.questions import EXPERIMENTS
from transformer.commands.arguments import model_command, open_model, shown, write
from transformer.runs.translator import Translator
from transformer.storage.description import (
    BACKUPS_FILE,
    EXPERIMENTS_FILE,
    HEADS_FILE,
    model_digests,
    read_heads,
)
from transformer.storage.files import write_json
from transformer.text.pairs import read_pairs

SENTENCES = 60


def add_commands(commands: Any) -> None:
    """Declares the commands on an argparse sub-parser collection."""
    backups = model_command(
        commands,
        "backups",
        write_backups,
        "ablate all heads of a kind in pairs and write the model's backups.json: which head takes over",
    )
    backups.add_argument(
        "--data", required=True, metavar="FILE", help="source<TAB>target lines; sources are read"
    )
    backups.add_argument("--sentences", type=int, default=SENTENCES, help="use the first N pairs of --data")
    model_command(
        commands,
        "experiments",
        write_experiments,
        "put a model to the ready experiments and write its experiments.json, which the page What if shows",
    )


def write_backups(arguments: argparse.Namespace) -> int:
    """`backups`: measures the pairs of every kind, and writes `backups.json`."""
    directory = Path(arguments.model)
    if not directory.is_dir():
        raise ValueError(f"There is no directory {directory} to write into; see `pull --output`.")
    texts = [pair.source for pair in read_pairs(arguments.data)[: arguments.sentences]]
    translator = open_model(arguments)
    values = {
        "model": translator.name,
        "data": f"the model's own translations of {len(texts)} sentences of {shown(arguments.data)}",
        "command": f"python -m lab backups --model {arguments.model} --data {arguments.data} "
        f"--sentences {arguments.sentences}",
        "date": date.today().isoformat(),
        "digests": model_digests(directory),
        "kinds": {str(kind): _pairs(translator, texts, str(kind)) for kind in translator.config.sites},
    }
    write_json(directory / BACKUPS_FILE, values)
    write(arguments, values, f"Wrote {directory / BACKUPS_FILE}.")
    return 0


def write_experiments(arguments: argparse.Namespace) -> int:
    """`experiments`: puts the model to every question that it can read, and writes `experiments.json`.

    Raises:
        ValueError: There is no such directory, or it has no `heads.json`.
    """
    directory = Path(arguments.model)
    heads = read_heads(directory) if directory.is_dir() else None
    if heads is None:
        raise ValueError(f"There is no {directory / HEADS_FILE}, which says where the experiments look.")
    translator = open_model(arguments)
    found: dict[str, list[dict[str, Any]]] = {}
    for each in EXPERIMENTS:
        try:
            found[each.name] = [to_values(answer) for answer in answers(translator, each, heads)]
        except ValueError as error:
            print(f"{each.name}: left out. {error}", flush=True)
    values = {
        "model": translator.name,
        "command": f"python -m lab experiments --model {arguments.model}",
        "date": date.today().isoformat(),
        "digests": model_digests(directory),
        "experiments": found,
    }
    write_json(directory / EXPERIMENTS_FILE, values)
    write(arguments, values, f"Wrote {directory / EXPERIMENTS_FILE}.")
    return 0


def _pairs(translator: Translator, texts: list[str], kind: str) -> dict[str, Any]:
    by = "zero" if translator.means is None else "mean"
    return to_json(pair_effects(backup_heads(translator, texts, kind, by=by)))
