"""`python -m lab hard-attention`: soft and hard attention learn a toy task, in curves."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any, get_args

import torch

from lab.hard_attention.hard_attention import (
    BATCH,
    ESTIMATES,
    HELD_OUT,
    LONGEST,
    RATE,
    WIDTH,
    Learner,
    Method,
)
from lab.twins.command import report
from transformer.commands.arguments import command_line
from transformer.lenses.scores.bootstrap import rounded
from transformer.storage.files import write_json
from transformer.training.toys.tasks import TOYS

OUTPUT = Path("assets/models/recurrent/hard_attention.json")
STEPS, EVERY, SEEDS = 1000, 50, 4
Json = dict[str, Any]


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "teach small models a toy task with soft attention and with hard attention (REINFORCE)"
    parser: argparse.ArgumentParser = commands.add_parser("hard-attention", help=text, description=text)
    tasks = [name for name, toy in TOYS.items() if toy.spelled]
    parser.add_argument("--task", choices=tasks, default="reverse", help="by default reverse")
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N", help=f"by default {STEPS}")
    parser.add_argument("--every", type=int, default=EVERY, metavar="N", help="steps between measurements")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="models of each kind")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE", help=f"by default {OUTPUT}")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Trains all models and writes their curves; returns the exit status.

    Raises:
        ValueError: A number is out of range.
    """
    if min(arguments.steps, arguments.every, arguments.seeds) < 1:
        raise ValueError("--steps, --every and --seeds need numbers of at least 1.")
    started, threads = time.perf_counter(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        methods = {method: _curves(arguments, method) for method in get_args(Method)}
    finally:
        torch.set_num_threads(threads)
    write_json(arguments.output, _about(arguments) | {"methods": methods})
    print(f"Wrote {arguments.output} in {time.perf_counter() - started:.0f} s.", file=sys.stderr)
    return 0


def _about(arguments: argparse.Namespace) -> Json:
    return {
        "command": command_line("lab"),
        "date": date.today().isoformat(),
        "task": arguments.task,
        "longest": LONGEST,
        "d_model": WIDTH,
        "batch": BATCH,
        "learning_rate": RATE,
        "held_out": HELD_OUT,
        "estimates": ESTIMATES,
        "seeds": arguments.seeds,
    }


def _curves(arguments: argparse.Namespace, method: Method) -> Json:
    """The measured steps, and one curve of each quantity for each seed."""
    runs = []
    for seed in range(1, arguments.seeds + 1):
        runs.append(asdict(Learner(method, arguments.task, seed).learn(arguments.steps, arguments.every)))
        report(f"{method} attention, seed {seed}: {runs[-1]['exact'][-1]:.1%} exact")
    measured = [name for name, values in runs[0].items() if values and name != "steps"]
    curves = {name: [[rounded(each) for each in run[name]] for run in runs] for name in measured}
    return {"steps": runs[0]["steps"]} | curves
