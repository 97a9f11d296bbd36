"""A training run: its log, thinned to `history.json` beside the model, and what a model card states
of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.storage.description import (
    DIGESTS,
    HISTORY_FILE,
    WEIGHTS_FILE,
    measured,
    model_digests,
)
from transformer.storage.directory import step_of
from transformer.storage.files import write_json
from transformer.storage.typed import read_typed, typed
from transformer.text.pairs import DataError
from transformer.training.log import read_log, short
from transformer.training.trainer import TrainingStep

POINTS = 400
"""Most steps that the file keeps, and most evaluations: so many lines of numbers stay below 100
kB."""
WINDOW = 100
"""A smoothed value is a mean over one WINDOW-th of the run around its step."""
_STEP = (
    "step",
    "loss",
    "smoothed_loss",
    "learning_rate",
    "gradient_norm",
    "smoothed_gradient_norm",
)
_EVALUATED = ("step", "valid_loss", "valid_loss_average", "bleu")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class History:
    """The log of a run at some of its steps. Lists of a table are equally long."""

    steps: int  # number of steps of the run
    window: int  # number of steps that a smoothed value is a mean over
    # "step", "loss" (nats per token, smoothed targets), "learning_rate" and "gradient_norm" of some
    # steps, and as "smoothed_…" means over the steps around them
    training: Mapping[str, Sequence[float]]
    # "step", "valid_loss", "valid_loss_average" and "bleu"; None if it was not measured
    evaluations: Mapping[str, Sequence[float | None]]
    bleu_sentences: int | None = None  # validation sentences of BLEU; None if it was not measured

    def __post_init__(self) -> None:
        for table, names in ((self.training, _STEP), (self.evaluations, _EVALUATED)):
            if len({len(table[name]) for name in names}) != 1:
                raise ValueError("The lists of a table are not equally long.")
            steps = [step or 0 for step in table["step"]]
            if len(steps) > POINTS or any(a >= b for a, b in pairwise((0, *steps))):
                raise ValueError("The steps are too many, or not in order.")
        if not self.training["step"] or min(self.steps, self.window, self.bleu_sentences or 1) < 1:
            raise ValueError("Something is counted that is not there.")
        if self.bleu_sentences is None and self.measured("bleu"):
            raise ValueError("Nothing says on how many sentences BLEU was measured.")

    def measured(self, name: str) -> list[tuple[int, float]]:
        """The evaluations that measured something: steps and values."""
        rows = zip(self.evaluations["step"], self.evaluations[name], strict=True)
        return [
            (int(step), value) for step, value in rows if step is not None and value is not None
        ]


def thinned(log: Sequence[TrainingStep]) -> History:
    """The history of a log."""
    window = max(1, math.ceil(len(log) / WINDOW))
    loss, norm, tokens = np.array(
        [(step.loss, step.gradient_norm, step.tokens) for step in log], float
    ).T
    smoothed = {
        "smoothed_loss": _smoothed(loss, tokens, window),
        "smoothed_gradient_norm": _smoothed(norm, np.ones(len(log)), window),
    }
    evaluated = [step for step in log if step.valid_loss is not None]
    counts = [step.bleu_sentences for step in evaluated if step.bleu is not None]
    return History(
        log[-1].step,
        window,
        training=_table(log, _STEP, smoothed),
        evaluations=_table(evaluated, _EVALUATED, {}),
        bleu_sentences=counts[-1] if counts else None,
    )


def _table(
    log: Sequence[TrainingStep], names: Sequence[str], smoothed: Mapping[str, Floats]
) -> dict[str, list[Any]]:
    """Columns of at most POINTS rows, evenly spread from the first step to the last."""
    count = min(len(log), POINTS)
    rows = [round(i * (len(log) - 1) / max(1, count - 1)) for i in range(count)]
    return {
        name: [
            short(smoothed[name][i] if name in smoothed else getattr(log[i], name)) for i in rows
        ]
        for name in names
    }


def _smoothed(values: Floats, weights: Floats, window: int) -> Floats:
    """Weighted means over a window around each place; at both ends, over what there is of it."""
    ends = np.arange(len(values)) + window // 2 + 1
    first = np.maximum(ends - window, 0)
    last = np.minimum(ends, len(values))
    sums = _sums(values * weights)
    total = _sums(weights)
    means: Floats = (sums[last] - sums[first]) / np.maximum(total[last] - total[first], 1e-12)
    return means


def _sums(values: Floats) -> Floats:
    """The sums of the first values of a row, from none to all."""
    return np.concatenate(([0.0], np.cumsum(values)))


def write_history(directory: Path, log: Path, command: str, date: str) -> History:
    """Writes `history.json` beside a run's model; DataError if the log ends before the weights'
    step."""
    step = step_of(directory)
    history = thinned(read_log(log, step))
    if step is not None and history.steps < step:
        raise DataError(
            f"{log} ends at step {history.steps:,}, but {directory / WEIGHTS_FILE} is of step "
            f"{step:,}: this is the log of another run."
        )
    values = (
        {"command": command, "date": date} | vars(history) | {DIGESTS: model_digests(directory)}
    )
    write_json(directory / HISTORY_FILE, values)
    return history


def read_history(directory: Path) -> History | None:
    """The history beside a model; None if absent or of other weights; CheckpointError if
    damaged."""
    if measured(directory, HISTORY_FILE) is None:
        return None
    return read_typed(directory / HISTORY_FILE, partial(typed, History))
