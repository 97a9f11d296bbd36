"""`python -m lab positions`: runs the experiments on trained twins and writes one result file."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from lab.twins.profiles import attention_profiles, costs, learned_tables, position_probes
from lab.twins.twins import (
    BASELINE,
    Twins,
    by_length,
    long_texts,
    score_pairs,
    shuffled_sources,
    source_lengths,
    summary,
    target_lengths,
)
from transformer.commands.arguments import command_line
from transformer.model.encodings.positions import REGISTRY
from transformer.model.network import count_parameters
from transformer.runs.translator import Translator, load_translator
from transformer.storage.description import CONFIG_FILE, WEIGHTS_FILE, model_digests
from transformer.storage.files import read_json, write_json
from transformer.text.pairs import DataError, SentencePair, read_pairs

RESULTS_FILE = "results.json"
VERSION = 1
PROBED = 1_000
"""Most pairs whose positions a linear probe reads."""
PARTS = ("attention", "probe", "table", "cost")
"""Experiments that `--only` measures again; the others share their translations of the test data."""


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "measure costs and benefits of positional encodings on twins that differ in nothing else"
    parser: argparse.ArgumentParser = commands.add_parser("positions", help=text, description=text)
    parser.add_argument(
        "--models", required=True, type=Path, metavar="DIR", help="folder of model directories"
    )
    parser.add_argument("--data", required=True, metavar="FILE", help="source<TAB>target lines to test on")
    parser.add_argument("--train", required=True, metavar="FILE", help="pairs that the twins were trained on")
    parser.add_argument("--seeds", type=Path, metavar="DIR", help="folder of twins trained with other seeds")
    parser.add_argument("--sentences", type=int, metavar="N", help="test on the first N pairs only")
    parser.add_argument(
        "--profiled",
        type=int,
        default=200,
        metavar="N",
        help="number of pairs whose attention is summed by distance",
    )
    parser.add_argument(
        "--only", choices=PARTS, help="measure this experiment again and keep the rest of the result file"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help=f"result file; by default {RESULTS_FILE} in --models"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the experiments and writes the results; returns the exit status.

    Raises:
        ValueError: There are no models, a seed is not named after a twin, vocabularies differ, or the data
            cannot be read.
    """
    twins = load_twins(arguments.models)
    seeds = {} if arguments.seeds is None else load_twins(arguments.seeds)
    check_seeds(twins, seeds)
    check_same_vocabulary(twins | seeds)
    started = time.perf_counter()
    output = arguments.output or arguments.models / RESULTS_FILE
    if arguments.only is None:
        values = measure(arguments, twins, seeds)
    else:
        values = measure_again(arguments, twins, read_json(output))
    write_json(output, values)
    print(f"Wrote {output} in {time.perf_counter() - started:.0f} s.", file=sys.stderr)
    return 0


def load_twins(folder: Path) -> Twins:
    """Every model directory in a folder, by name.

    Raises:
        ValueError: The folder holds no model directory.
    """
    configs = sorted(folder.glob(f"*/{CONFIG_FILE}"))
    found = [path.parent for path in configs if (path.parent / WEIGHTS_FILE).exists()]
    if not found:
        raise ValueError(f"There is no model directory in {folder}.")
    order = [*REGISTRY, *(path.name for path in found)]
    return {
        path.name: load_translator(path) for path in sorted(found, key=lambda path: order.index(path.name))
    }


def check_seeds(twins: Twins, seeds: Twins) -> None:
    """Raises ValueError if a model of another seed is not named after its twin, as `rotary-seed2` is."""
    for name in seeds:
        twin, marked, number = name.partition("-seed")
        if twin not in twins or not marked or not number.isdigit():
            raise ValueError(
                f"The model {name} in --seeds is not named after a twin; name its folder TWIN-seed2, with "
                f"TWIN one of {', '.join(twins)}."
            )


def check_same_vocabulary(twins: Twins) -> None:
    """Raises ValueError if two models split texts into different pieces."""
    vocabularies = {name: _vocabulary(twin) for name, twin in twins.items()}
    first, *others = vocabularies
    for name in others:
        if vocabularies[name] != vocabularies[first]:
            raise ValueError(
                f"The models {first} and {name} have different vocabularies; twins must share one."
            )


def _vocabulary(twin: Translator) -> tuple[str, ...]:
    return twin.tokenizer.source_pieces(range(twin.tokenizer.vocab_size))


def measure(arguments: argparse.Namespace, twins: Twins, seeds: Twins) -> dict[str, Any]:
    """Results of all experiments as JSON values."""
    pairs = _test_pairs(arguments)
    training, some, everyone = read_pairs(arguments.train), next(iter(twins.values())), twins | seeds
    trained_length = int(np.percentile(source_lengths(some, training), 99))
    scored = {name: score_pairs(twin, pairs) for name, twin in everyone.items()}
    report("translated the test pairs")
    values = {
        "version": VERSION,
        **_when(),
        "baseline": BASELINE,
        "sentences": len(pairs),
        "models": {
            name: describe(twin)
            | {"other_seed": name in seeds}
            | {"digests": model_digests((arguments.seeds if name in seeds else arguments.models) / name)}
            for name, twin in everyone.items()
        },
        "scores": summary(scored),
        "lengths": by_length(scored, source_lengths(some, pairs)),
        "long": long_texts(everyone, pairs, trained_length),
        "shuffled": shuffled_sources(everyone, scored, pairs),
    }
    report("translated long and shuffled texts")
    return values | {name: make() for name, make in _parts(arguments, twins, pairs, training).items()}


def measure_again(arguments: argparse.Namespace, twins: Twins, values: dict[str, Any]) -> dict[str, Any]:
    """The values with one experiment measured again; `again` says when and by which command."""
    name = arguments.only
    part = _parts(arguments, twins, _test_pairs(arguments), read_pairs(arguments.train))[name]
    return values | {name: part(), "again": values.get("again", {}) | {name: _when()}}


def _test_pairs(arguments: argparse.Namespace) -> list[SentencePair]:
    pairs = read_pairs(arguments.data)[: arguments.sentences]
    if len(pairs) < 2:
        raise DataError(f"{arguments.data}: the experiments need at least two pairs.")
    return pairs


def _when() -> dict[str, str]:
    command = command_line("lab")
    return {"command": command, "date": date.today().isoformat()}


def _parts(
    arguments: argparse.Namespace, twins: Twins, pairs: list[SentencePair], training: Sequence[SentencePair]
) -> dict[str, Callable[[], Any]]:
    """The experiments of `PARTS`; each runs when it is called."""
    some = next(iter(twins.values()))
    return {
        "attention": lambda: attention_profiles(twins, pairs[: arguments.profiled]),
        "probe": lambda: position_probes(twins, pairs[:PROBED]),
        "table": lambda: learned_tables(
            twins, source_lengths(some, training), target_lengths(some, training)
        ),
        "cost": lambda: costs(twins),
    }


def report(done: str) -> None:
    """Reports a finished stage on standard error."""
    print(f"{time.strftime('%H:%M:%S')} {done}", file=sys.stderr, flush=True)


def describe(twin: Translator) -> dict[str, Any]:
    """The settings in which twins differ."""
    own = sum(count_parameters(twin.model.stack(side).positions) for side in twin.config.stacks)
    return {
        "positions": twin.config.positions,
        "norm": twin.config.norm,
        "parameters": count_parameters(twin.model),
        "position_parameters": own,
    }
