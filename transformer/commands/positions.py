"""`python -m transformer positions`: runs the experiments on trained twins and writes one result file."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from transformer.model.encodings.positions import REGISTRY
from transformer.model.transformer import count_parameters
from transformer.storage.description import CONFIG_FILE, WEIGHTS_FILE
from transformer.storage.files import write_json
from transformer.study.profiles import attention_profiles, costs, learned_tables
from transformer.study.twins import (
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
from transformer.text.pairs import DataError, read_pairs
from transformer.translate.translator import Translator, load_translator

RESULTS_FILE = "results.json"
VERSION = 1


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
    values = measure(arguments, twins, seeds)
    output = arguments.output or arguments.models / RESULTS_FILE
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
    pairs = read_pairs(arguments.data)[: arguments.sentences]
    if len(pairs) < 2:
        raise DataError(f"{arguments.data}: the experiments need at least two pairs.")
    training, some, everyone = read_pairs(arguments.train), next(iter(twins.values())), twins | seeds
    sources, targets = source_lengths(some, training), target_lengths(some, training)
    trained_length = int(np.percentile(sources, 99))
    scored = {name: score_pairs(twin, pairs) for name, twin in everyone.items()}
    report("translated the test pairs")
    values = {
        "version": VERSION,
        "command": shlex.join(["python", "-m", "transformer", *sys.argv[1:]]),
        "date": date.today().isoformat(),
        "baseline": BASELINE,
        "sentences": len(pairs),
        "models": {name: describe(twin) | {"other_seed": name in seeds} for name, twin in everyone.items()},
        "scores": summary(scored),
        "lengths": by_length(scored, source_lengths(some, pairs)),
        "long": long_texts(everyone, pairs, trained_length),
        "shuffled": shuffled_sources(everyone, scored, pairs),
    }
    report("translated long and shuffled texts")
    values["attention"] = attention_profiles(twins, pairs[: arguments.profiled])
    values["table"] = learned_tables(twins, sources, targets)
    values["cost"] = costs(twins)
    return values


def report(done: str) -> None:
    """Reports a finished stage on standard error."""
    print(f"{time.strftime('%H:%M:%S')} {done}", file=sys.stderr, flush=True)


def describe(twin: Translator) -> dict[str, Any]:
    """The settings in which twins differ."""
    stacks = twin.model.encoder, twin.model.decoder
    own = sum(count_parameters(stack.positions) for stack in stacks)
    return {
        "positions": twin.config.positions,
        "norm": twin.config.norm,
        "parameters": count_parameters(twin.model),
        "position_parameters": own,
    }
