"""`python -m lab pretraining`: what an encoder gains from beginning as a language model."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import Any

from lab.pretraining.pretraining import PRETRAINED, SCRATCH, compare, runs_in
from lab.twins.twins import score_pairs
from transformer.commands.arguments import command_line
from transformer.runs.translator import load_translator
from transformer.storage.files import write_json
from transformer.text.pairs import read_pairs


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
    made = {"command": command_line("lab"), "date": date.today().isoformat(), "sentences": len(pairs)}
    write_json(arguments.output, {**made, "compared": compared})
    return 0


def _sentence(models: dict[str, Any]) -> str:
    scratch, pretrained = (models[how]["bleu"] for how in (SCRATCH, PRETRAINED))
    gap = pretrained["difference"]
    return (
        f"{scratch['value']['value']:.1f} BLEU from scratch, {pretrained['value']['value']:.1f} pretrained "
        f"({gap['value']:+.1f} [{gap['low']:+.1f}, {gap['high']:+.1f}])."
    )
