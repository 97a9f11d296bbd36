"""`python -m lab cost`: what kinds of layers cost on this machine, and what decoding costs."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch

from lab.cost import decoding
from lab.cost.layers import HEADS
from lab.cost.measuring import FITTED_FROM, LENGTHS, WIDTHS, machine, measure_layers
from lab.cost.table import BLOCK, KERNEL
from transformer.commands.arguments import command_line
from transformer.runs.translator import load_translator
from transformer.storage.files import write_json

MODEL, OUTPUT = Path("assets/models/en-de"), Path("assets/cost.json")
REPEATS = 9
Json = dict[str, Any]


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "measure time and memory of kinds of layers (Table 1 of the paper), and of decoding"
    parser: argparse.ArgumentParser = commands.add_parser("cost", help=text, description=text)
    parser.add_argument(
        "--model",
        default=MODEL,
        type=Path,
        metavar="DIR",
        help="model whose decoder is timed",
    )
    parser.add_argument("--widths", nargs="+", type=int, default=WIDTHS, metavar="D", help="values of d")
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS, metavar="N", help="values of n")
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N", help="runs of each")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE", help=f"by default {OUTPUT}")
    parser.set_defaults(run=write_cost)


def write_cost(arguments: argparse.Namespace) -> int:
    """`cost`: measures with one thread, and writes the file.

    Raises:
        ValueError: A number is out of range.
    """
    _check(arguments)
    started, threads = time.perf_counter(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        values = _measured(arguments)
    finally:
        torch.set_num_threads(threads)
    write_json(arguments.output, values)
    print(f"Wrote {arguments.output} in {time.perf_counter() - started:.0f} s.", file=sys.stderr)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    given: dict[str, Sequence[int]] = {
        "--widths": arguments.widths,
        "--lengths": arguments.lengths,
        "--repeats": [arguments.repeats],
    }
    for name, numbers in given.items():
        if min(numbers) < 1:
            raise ValueError(f"{name} needs numbers of at least 1.")
    if wrong := [width for width in arguments.widths if width % (2 * HEADS)]:
        raise ValueError(f"--widths {wrong[0]} is not a multiple of {2 * HEADS}.")


def _measured(arguments: argparse.Namespace) -> Json:
    translator, lengths = load_translator(arguments.model), sorted(set(arguments.lengths))
    values: Json = {
        "command": command_line("lab"),
        "date": date.today().isoformat(),
        "machine": machine(),
        "repeats": arguments.repeats,
        "heads": HEADS,
        "kernel": KERNEL,
        "block": BLOCK,
        "lengths": lengths,
        "fitted_from": FITTED_FROM,
        "widths": {},
        "decoding": {"model": translator.name}
        | decoding.measure_decoding(translator.model, decoding.LENGTHS, arguments.repeats),
    }
    for width, found in measure_layers(sorted(set(arguments.widths)), lengths, arguments.repeats):
        values["widths"][str(width)] = found
        print(f"Measured d = {width}.", file=sys.stderr, flush=True)
    return values
