"""`python -m lab birth`: when the heads of a run with snapshots appear."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from lab.birth.snapshots import hashes
from lab.birth.statistics import SNAPSHOTS, run_statistics
from transformer.commands.arguments import command_line, shown, write
from transformer.storage.description import BIRTH_FILE, model_digests, weights_hash
from transformer.storage.files import write_json
from transformer.text.links import GoldPair, read_gold
from transformer.text.pairs import SentencePair, read_pairs
from transformer.training.runs.snapshots import snapshot_steps

SENTENCES = 200
Json = dict[str, Any]


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "measure all snapshots of a run and write its birth.json: when heads appear"
    parser: argparse.ArgumentParser = commands.add_parser("birth", help=text, description=text)
    parser.add_argument(
        "--model", required=True, type=Path, metavar="DIR", help="model directory with snapshots"
    )
    parser.add_argument(
        "--seeds", nargs="+", default=[], type=Path, metavar="DIR", help="the same run with other seeds"
    )
    parser.add_argument(
        "--data", required=True, metavar="FILE", help="source<TAB>target lines; targets are forced"
    )
    parser.add_argument(
        "--alignments", required=True, metavar="FILE", help="source<TAB>target<TAB>links lines"
    )
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="use the first N pairs of --data")
    parser.add_argument("--json", action="store_true", help="print lines of JSON")
    parser.set_defaults(run=write_birth)


def write_birth(arguments: argparse.Namespace) -> int:
    """`birth`: measures every snapshot of the run and of its seeds, and writes `birth.json`.

    Raises:
        ValueError: A directory has no snapshots, or not those of the same steps; or the data hold no pairs.
    """
    directory: Path = arguments.model
    check_steps(directory, arguments.seeds)
    pairs, gold = read_pairs(arguments.data)[: arguments.sentences], read_gold(arguments.alignments)
    if not pairs or not gold:
        raise ValueError("The statistics need at least one pair of --data and one of --alignments.")
    values = {
        "model": directory.name,
        "data": f"{len(pairs)} pairs of {shown(arguments.data)}, given targets forced; aer: {len(gold)} "
        f"pairs of {shown(arguments.alignments)}",
        "command": command_line("lab"),
        "date": date.today().isoformat(),
        "digests": model_digests(directory),
        SNAPSHOTS: hashes(directory),
        "runs": [_run(each, pairs, gold) for each in (directory, *arguments.seeds)],
    }
    write_json(directory / BIRTH_FILE, values)
    write(arguments, values, f"Wrote {directory / BIRTH_FILE}.")
    return 0


def check_steps(directory: Path, seeds: Sequence[Path]) -> None:
    """Raises ValueError unless all directories have snapshots, and of the same steps."""
    steps = snapshot_steps(directory)
    for each in (directory, *seeds):
        found = snapshot_steps(each)
        if not found:
            raise ValueError(f"{each} has no snapshots; train with --snapshots.")
        if found != steps:
            raise ValueError(
                f"{each} has snapshots of other steps than {directory}; the runs cannot be compared."
            )


def _run(directory: Path, pairs: Sequence[SentencePair], gold: Sequence[GoldPair]) -> Json:
    print(f"Measuring {directory} …", file=sys.stderr, flush=True)
    return {"name": directory.name, "weights": weights_hash(directory)} | run_statistics(
        directory, pairs, gold
    )
