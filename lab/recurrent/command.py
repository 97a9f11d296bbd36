"""`python -m lab recurrent`: measures recurrent twins beside a Transformer, in one result file."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch

from lab.cost.measuring import machine
from lab.recurrent.aligning import alignment_errors
from lab.recurrent.speed import LENGTHS, measure_speed
from lab.twins.command import check_same_vocabulary, load_twins, report
from lab.twins.twins import Twins, by_length, score_pairs, source_lengths, summary
from transformer.commands.arguments import command_line, shown
from transformer.model.config import RecurrentConfig
from transformer.model.network import count_parameters
from transformer.runs.translator import load_translator
from transformer.storage.description import WEIGHTS_FILE, model_digests
from transformer.storage.files import read_json, write_json
from transformer.text.links import read_gold
from transformer.text.pairs import DataError, read_pairs

RESULTS_FILE = "results.json"
VERSION = 1
REPEATS = 5
PARTS = ("translation", "alignments", "speed")
"""What `--only` measures again."""
Json = dict[str, Any]


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "compare recurrent twins with a Transformer: translation by length, alignment, speed"
    parser: argparse.ArgumentParser = commands.add_parser("recurrent", help=text, description=text)
    parser.add_argument(
        "--models", required=True, type=Path, metavar="DIR", help="folder of recurrent model directories"
    )
    parser.add_argument(
        "--reference", required=True, type=Path, metavar="DIR", help="the Transformer to compare with"
    )
    parser.add_argument("--data", required=True, metavar="FILE", help="source<TAB>target lines to test on")
    parser.add_argument(
        "--alignments",
        nargs="*",
        default=(),
        metavar="FILE",
        help="source<TAB>target<TAB>links lines, to measure alignment errors",
    )
    parser.add_argument("--sentences", type=int, metavar="N", help="test on the first N pairs only")
    parser.add_argument(
        "--lengths", nargs="+", type=int, default=LENGTHS, metavar="N", help="lengths at which speed is timed"
    )
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N", help="runs of each timing")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, help="measure these parts and keep the rest of the result file"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help=f"result file; by default {RESULTS_FILE} in --models"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measures, writes the results, and prints the ratios of the speeds; returns the exit status.

    Raises:
        ValueError: There is no recurrent model, vocabularies differ, or the data cannot be read.
    """
    twins = _opened(arguments)
    output, started = arguments.output or arguments.models / RESULTS_FILE, time.perf_counter()
    parts: dict[str, Callable[[], Json]] = {
        "translation": lambda: _translation(arguments, twins),
        "alignments": lambda: _alignments(arguments, twins),
        "speed": lambda: _speed(arguments, twins),
    }
    values = _kept(output, arguments.only) or _about(arguments, twins)
    for name in arguments.only or PARTS:
        values |= parts[name]()
        report(f"measured {name}")
    write_json(output, values)
    if "speed" in values:
        _print_ratios(values["speed"])
    print(f"Wrote {output} in {time.perf_counter() - started:.0f} s.", file=sys.stderr)
    return 0


def _kept(output: Path, only: Sequence[str] | None) -> Json:
    """What stays of the result file if only some parts are measured; `again` says when and how these were."""
    if only is None or not output.exists():
        return {}
    known = read_json(output)
    return known | {"again": known.get("again", {}) | dict.fromkeys(only, _when())}


def _opened(arguments: argparse.Namespace) -> Twins:
    """The recurrent models of the folder by name, then the reference."""
    found = load_twins(arguments.models)
    if other := [name for name, twin in found.items() if not isinstance(twin.config, RecurrentConfig)]:
        raise ValueError(f"The model {other[0]} in {arguments.models} is not recurrent.")
    reference = load_translator(arguments.reference)
    if reference.name in found:
        raise ValueError(f"The reference is named {reference.name}, as one of the models is.")
    twins = found | {reference.name: reference}
    check_same_vocabulary(twins)
    return twins


def _reference(twins: Twins) -> str:
    """The name of the last of them."""
    return next(reversed(twins))


def _about(arguments: argparse.Namespace, twins: Twins) -> Json:
    folders = {name: arguments.models / name for name in twins} | {_reference(twins): arguments.reference}
    models = {
        name: {
            "recurrent": isinstance(twin.config, RecurrentConfig),
            "parameters": count_parameters(twin.model),
            "bytes": (folders[name] / WEIGHTS_FILE).stat().st_size,
            "digests": model_digests(folders[name]),
        }
        for name, twin in twins.items()
    }
    return {"version": VERSION, **_when(), "reference": _reference(twins), "models": models}


def _when() -> Json:
    return {"command": command_line("lab"), "date": date.today().isoformat()}


def _translation(arguments: argparse.Namespace, twins: Twins) -> Json:
    pairs = read_pairs(arguments.data)[: arguments.sentences]
    if len(pairs) < 2:
        raise DataError(f"{arguments.data}: the comparison needs at least two pairs.")
    reference = _reference(twins)
    scored = {name: score_pairs(twin, pairs) for name, twin in twins.items()}
    lengths = source_lengths(twins[reference], pairs)
    return {
        "sentences": len(pairs),
        "scores": summary(scored, reference),
        "lengths": by_length(scored, lengths, reference),
    }


def _alignments(arguments: argparse.Namespace, twins: Twins) -> Json:
    reference = _reference(twins)
    return {
        "alignments": {
            shown(path): alignment_errors(twins, read_gold(path), reference) for path in arguments.alignments
        }
    }


def _speed(arguments: argparse.Namespace, twins: Twins) -> Json:
    lengths = _lengths(arguments)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = measure_speed(twins, _reference(twins), lengths, arguments.repeats)
        return {"speed": {"machine": machine(), **found}}
    finally:
        torch.set_num_threads(threads)


def _lengths(arguments: argparse.Namespace) -> list[int]:
    if min(arguments.lengths) < 1 or arguments.repeats < 1:
        raise ValueError("--lengths and --repeats need numbers of at least 1.")
    return sorted(set(arguments.lengths))


def _print_ratios(speed: Json) -> None:
    """Prints each model's speed as a ratio to the reference's, by length."""
    lengths = speed["lengths"]
    _print_row("tokens in the sentence", [f"{n}" for n in lengths])
    for name, title in (("training", "tokens/s in training"), ("writing", "ms per token written")):
        for model, found in speed[name].items():
            _print_row(f"{title}, {model}, ratio", [f"{ratio:.2f}" for ratio in found["ratio"]])


def _print_row(title: str, cells: Sequence[str]) -> None:
    print(f"{title:48}" + "".join(f"{cell:>8}" for cell in cells))
