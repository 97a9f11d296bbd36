"""`python -m lab birth`: when the heads of a run with snapshots appear."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from lab.birth.snapshots import hashes
from lab.birth.statistics import SNAPSHOTS, run_statistics
from lab.measurement import Folder, Gold, Json, Model, Pairs, measurement, report
from transformer.commands.arguments import shown
from transformer.storage.description import BIRTH_FILE, WEIGHTS_FILE, weights_hash
from transformer.storage.eight_bits import stored_as
from transformer.text.links import GoldPair, read_gold
from transformer.text.pairs import SentencePair, read_pairs
from transformer.training.runs.snapshots import snapshot_steps


@measurement(BIRTH_FILE)
def birth(
    model: Model,
    data: Pairs,
    alignments: Gold,
    seeds: Annotated[tuple[Folder, ...], "the same run with other seeds"] = (),
    sentences: Annotated[int, "use the first N pairs of --data"] = 200,
) -> Json:
    """Measures all snapshots of a run and of its seeds: when heads appear."""
    check_steps(model, seeds)
    pairs, gold = read_pairs(data)[:sentences], read_gold(alignments)
    if not pairs or not gold:
        raise ValueError("The statistics need at least one pair of --data and one of --alignments.")
    return {
        "data": f"{len(pairs)} pairs of {shown(data)}, given targets forced; aer: {len(gold)} pairs of "
        f"{shown(alignments)}",
        SNAPSHOTS: hashes(model),
        "runs": [_run(each, pairs, gold) for each in (model, *seeds)],
    }


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
    report(f"measuring {directory}")
    found = run_statistics(directory, pairs, gold)
    stored = stored_as(directory / WEIGHTS_FILE)
    return {"name": directory.name, "weights": weights_hash(directory), "stored": stored} | found
