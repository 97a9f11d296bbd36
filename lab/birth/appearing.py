"""From which step on something holds in a run, and what counts as having appeared. No PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PREVIOUS = 0.5
"""A head is a previous-token head if more rows than this point at the token before."""
LATER = 0.5
"""A decoder looks back on its own if later tokens get less than this share of what even weight gives them."""


@dataclass(frozen=True, eq=False)
class Born:
    """One run of ``birth.json``, as arrays."""

    name: str  # the run
    stored: str  # how its snapshots hold the weights, such as ``float16``
    steps: tuple[int, ...]  # the steps of its snapshots
    loss: Floats  # (steps,) nats per token
    previous: dict[str, Floats]  # by kind, (steps, layers, heads)
    later: dict[str, Floats]  # by kind, (steps, layers, heads)
    even: dict[str, float]  # by kind, ``later`` of even weight
    errors: Floats  # (steps, layers, heads) alignment error by the better of both rows
    diagonal: float  # alignment error of the diagonal

    def previous_best(self, kind: str) -> Floats:
        """(steps,) the highest share of rows that a head of this kind points at the token before."""
        return _flat(self.previous[kind]).max(-1)

    def later_mean(self, kind: str) -> Floats:
        """(steps,) the weight on later tokens without a mask, averaged over the heads of a kind."""
        return _flat(self.later[kind]).mean(-1)

    def aligner_best(self) -> Floats:
        """(steps,) the lowest alignment error of a head."""
        return _flat(self.errors).min(-1)

    def previous_from(self, kind: str) -> int | None:
        """The step from which on a kind has a previous-token head."""
        return first_lasting(self.steps, self.previous_best(kind) > PREVIOUS)

    def aligner_from(self) -> int | None:
        """The step from which on a head aligns better than the diagonal."""
        return first_lasting(self.steps, self.aligner_best() < self.diagonal)

    def later_from(self, kind: str) -> int | None:
        """The step from which on the heads of a kind look back on their own."""
        return first_lasting(self.steps, self.later_mean(kind) < LATER * self.even[kind])


def runs_of(values: dict[str, Any]) -> tuple[Born, ...]:
    """The runs of a ``birth.json``: first the one whose snapshots lie beside it, then the other seeds."""
    return tuple(map(_run, values["runs"]))


def _run(values: dict[str, Any]) -> Born:
    def by_kind(name: str) -> dict[str, Floats]:
        return {kind: np.array(found, np.float64) for kind, found in values[name].items()}

    return Born(
        values["name"],
        str(values["stored"]),
        tuple(values["steps"]),
        np.array(values["loss"], np.float64),
        by_kind("previous"),
        by_kind("later"),
        dict(values["even"]),
        np.minimum(values["aer"], values["aer_read"]),
        float(values["aer_diagonal"]),
    )


def _flat(values: Floats) -> Floats:
    return values.reshape(len(values), -1)


def first_lasting(steps: Sequence[int], holds: Sequence[bool] | NDArray[np.bool_]) -> int | None:
    """The first step from which on something holds in every snapshot; None if it does not in the last one."""
    found = None
    for step, each in zip(reversed(steps), reversed(list(holds)), strict=True):
        if not each:
            break
        found = step
    return found
