"""Progress of a run, read from its log as it grows."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.training.log import read_step

POINTS = 300
"""Most points of a curve."""


@dataclass(frozen=True)
class Curves:
    """Measurements of a run so far; every list of points is (step, value)."""

    step: int = 0  # the last step
    seconds: float = 0.0  # time of all steps together
    # training loss in nats per token: means over neighbouring steps, if there are many
    loss: tuple[tuple[int, float], ...] = ()
    valid: tuple[tuple[int, float], ...] = ()  # validation loss of the weights that would be kept
    exact: tuple[tuple[int, float], ...] = ()  # share of held-out pairs that are written exactly


class Log:
    """A log of JSON lines that another process writes; each line is read once."""

    def __init__(
        self,
        path: Path,  # the file; it need not exist yet
    ) -> None:
        self._path, self._read, self._lock = path, 0, threading.Lock()
        self._seconds = 0.0
        self._loss: list[tuple[int, float]] = []
        self._valid: list[tuple[int, float]] = []
        self._exact: list[tuple[int, float]] = []

    def curves(self) -> Curves:
        """Measurements up to now."""
        with self._lock:
            for line in self._new():
                self._take(line)
            last = self._loss[-1][0] if self._loss else 0
            return Curves(
                last, self._seconds, tuple(_means(self._loss)), tuple(self._valid), tuple(self._exact)
            )

    def _new(self) -> list[bytes]:
        """The lines that are complete and were not read before."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                content = file.read()
        except OSError:
            return []
        whole = content[: content.rfind(b"\n") + 1]
        self._read += len(whole)
        return whole.splitlines()

    def _take(self, line: bytes) -> None:
        if (step := read_step(line)) is None:
            return
        self._loss.append((step.step, step.loss))
        self._seconds += step.seconds
        losses = [loss for loss in (step.valid_loss, step.valid_loss_average) if loss is not None]
        if losses:
            self._valid.append((step.step, min(losses)))
        if step.exact is not None:
            self._exact.append((step.step, step.exact))


def _means(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most POINTS points: the last step and the mean of each run of neighbours."""
    size = -(-len(points) // POINTS) or 1
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]
