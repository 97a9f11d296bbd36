"""Snapshots of a run: the weights at a few steps, so that one can watch how heads come into being.

They lie in the run's directory, one file of float16 weights a step; vocabulary and config are the run's. The
model itself is the last of them if its step is later than theirs, so that it need not lie there twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from transformer.storage.description import WEIGHTS_FILE
from transformer.storage.directory import Checkpoint, half_precision, load_checkpoint, step_of
from transformer.storage.files import CheckpointError, write_atomically
from transformer.storage.tensors import serialize_tensors

FOLDER = "snapshots"
MOST = 100
_NAME = re.compile(r"step-(\d{7,9})\.safetensors", re.ASCII)


def moments(count: int, steps: int) -> tuple[int, ...]:
    """The steps at which to keep the weights: the untrained model, then each twice as late, up to the last.

    Heads change fast at the beginning and slowly at the end, so the steps lie evenly on a logarithmic axis. A
    run too short for so many has fewer. ValueError if the count is not from 2 to ``MOST``.
    """
    if not 2 <= count <= MOST:
        raise ValueError(f"--snapshots is {count}; choose 2 to {MOST}, or leave it out.")
    halved = (steps // 2**k for k in range(count - 1))
    return (0, *sorted({step for step in halved if step}))


def save_snapshot(
    directory: Path,  # directory of the run
    step: int,  # step after which these are the weights; 0 is the untrained model
    state: dict[str, Tensor],  # the model's `state_dict()`
    # what the file holds in place of the state
    stored: Callable[[dict[str, Tensor]], dict[str, Tensor]] = half_precision,
) -> None:
    """Writes the weights of a step, atomically; CheckpointError if one is not finite in float16."""
    (directory / FOLDER).mkdir(parents=True, exist_ok=True)
    notes = {"format": "pt", "step": str(step)}
    write_atomically(directory / _file(step), serialize_tensors(stored(state), notes))


def snapshot_steps(directory: Path) -> tuple[int, ...]:
    """The steps of which a directory has snapshots, in their order; empty if it has none."""
    found = (_NAME.fullmatch(path.name) for path in (directory / FOLDER).glob("*.safetensors"))
    steps = sorted(int(match[1]) for match in found if match)
    last = step_of(directory) if steps and (directory / WEIGHTS_FILE).is_file() else None
    return (*steps, last) if last is not None and last > steps[-1] else tuple(steps)


def load_snapshot(directory: Path, step: int) -> Checkpoint:
    """The model as it was after a step; CheckpointError if that is missing, damaged or another model's."""
    steps = snapshot_steps(directory)
    if step not in steps:
        known = ", ".join(f"{each:,}" for each in steps) or "none"
        raise CheckpointError(f"{directory.name} has no snapshot of step {step:,}; it has {known}.")
    return load_checkpoint(directory, str(snapshot_file(directory, step).relative_to(directory)))


def snapshot_file(directory: Path, step: int) -> Path:
    """The file of the snapshot of a step."""
    path = directory / _file(step)
    return path if path.is_file() else directory / WEIGHTS_FILE


def _file(step: int) -> str:
    return f"{FOLDER}/step-{step:07}.safetensors"
