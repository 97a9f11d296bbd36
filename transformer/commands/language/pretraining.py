"""`python -m transformer pretraining`: what an encoder gains that began as a language model."""

from __future__ import annotations

import argparse
import json
import re
from datetime import date
from pathlib import Path
from typing import Any

from transformer.commands.arguments import command_line
from transformer.storage.files import write_json
from transformer.study.twins import Scored, score_pairs, summary
from transformer.text.pairs import DataError, read_pairs
from transformer.training.runs.files import LOG_FILE
from transformer.translate.translator import load_translator

SCRATCH, PRETRAINED = "scratch", "pretrained"
_RUN = re.compile(rf"({SCRATCH}|{PRETRAINED})-(\d+)-(\d+)")

Runs = dict[tuple[int, int], dict[str, Path]]
"""Directories of runs by percentage of the pairs and seed, and by how the encoder began."""


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "compare translators whose encoder began as a language model with others from scratch"
    parser: argparse.ArgumentParser = commands.add_parser("pretraining", help=text, description=text)
    parser.add_argument(
        "--runs",
        required=True,
        type=Path,
        metavar="DIR",
        help="holds scratch-P-S and pretrained-P-S: runs of `train` on P %% of the pairs with seed S",
    )
    parser.add_argument("--data", required=True, metavar="FILE", help="pairs to score")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="JSON file to write")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """`pretraining`: prints one line for each pair of runs, and writes all numbers.

    Raises:
        DataError: The folder has no two runs to compare, or the data cannot be used.
    """
    pairs, found = read_pairs(arguments.data), runs_in(arguments.runs)
    compared = []
    for (percent, seed), both in sorted(found.items()):
        scored = {how: score_pairs(load_translator(path), pairs) for how, path in both.items()}
        compared.append({"percent": percent, "seed": seed, **compare(scored, both)})
        print(f"{percent} % of the pairs, seed {seed}: {_sentence(compared[-1]['models'])}", flush=True)
    made = {"command": command_line(), "date": date.today().isoformat(), "sentences": len(pairs)}
    write_json(arguments.output, {**made, "compared": compared})
    return 0


def runs_in(folder: Path) -> Runs:
    """The runs of a folder that have a counterpart.

    Raises:
        DataError: There are none.
    """
    found: Runs = {}
    for path in sorted(folder.glob("*")):
        if match := _RUN.fullmatch(path.name):
            found.setdefault((int(match[2]), int(match[3])), {})[match[1]] = path
    both = {key: runs for key, runs in found.items() if set(runs) == {SCRATCH, PRETRAINED}}
    if not both:
        raise DataError(f"{folder} holds no runs named {SCRATCH}-P-S and {PRETRAINED}-P-S.")
    return both


def compare(scored: dict[str, Scored], runs: dict[str, Path]) -> dict[str, Any]:
    """BLEU and loss of both, the difference with its paired interval, and the loss along the way."""
    curves = {how: validation_losses(path) for how, path in runs.items()}
    return {"models": summary(scored, SCRATCH), "curves": curves}


def validation_losses(run: Path) -> list[tuple[int, float]]:
    """Steps of a run with their loss on the validation pairs, in nats per token."""
    lines = (json.loads(line) for line in (run / LOG_FILE).read_text("utf-8").splitlines())
    return [(line["step"], round(line["valid_loss"], 4)) for line in lines if "valid_loss" in line]


def _sentence(models: dict[str, Any]) -> str:
    scratch, pretrained = (models[how]["bleu"] for how in (SCRATCH, PRETRAINED))
    gap = pretrained["difference"]
    return (
        f"{scratch['value']['value']:.1f} BLEU from scratch, {pretrained['value']['value']:.1f} pretrained "
        f"({gap['value']:+.1f} [{gap['low']:+.1f}, {gap['high']:+.1f}])."
    )
