"""Other ways to mask the same scores than by −∞ before the softmax.

Only −∞ before the softmax masks correctly. These functions do not change the model: they recompute the
weights from the scores of a trace, to measure what each other way would leak.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
SUM_LIMIT = 1e-5
"""Largest deviation from 1 with which a row still counts as summing to 1."""


class Masking(StrEnum):
    """Place and way in which a mask acts on a row of scores (section 3.2.3 uses the first)."""

    MINUS_INFINITY = "minus-infinity"
    """Masked scores become −∞ before the softmax."""
    ZERO = "zero"
    """Masked scores become 0 before the softmax, so each still counts as e⁰ = 1."""
    NONE = "none"
    """No mask at all: masked keys take the weight that their scores give them."""
    AFTER = "after"
    """The softmax runs over all keys; masked weights become 0 after it."""


def masked_scores(scores: Floats, mask: Bools, way: Masking) -> Floats:
    """(queries, keys) scores that the softmax receives, if a mask (True = may attend) acts in some way."""
    put = {Masking.MINUS_INFINITY: -np.inf, Masking.ZERO: 0.0}.get(way)
    return scores if put is None else np.where(mask, scores, np.float32(put))


def masked_weights(scores: Floats, mask: Bools, way: Masking) -> Floats:
    """(queries, keys) weights that a way of masking gives; a row with no weight left is all zeros."""
    received = masked_scores(scores, mask, way).astype(np.float64)
    highest = received.max(-1, keepdims=True)
    powers = np.exp(received - np.where(np.isfinite(highest), highest, 0.0))
    total = powers.sum(-1, keepdims=True)
    weights = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
    return np.where(mask, weights, 0.0 if way is Masking.AFTER else weights).astype(np.float32)


@dataclass(frozen=True)
class Leak:
    """Share of a map that leaks through a mask."""

    masked: Floats  # (queries,) weight that each row puts on masked keys
    sums: Floats  # (queries,) sum of each row
    cells: int  # number of masked cells
    zeros: int  # number of weights that are exactly 0, masked or not

    @property
    def unequal(self) -> Bools:
        """(queries,) True for rows that do not sum to 1."""
        unequal: Bools = np.abs(self.sums - 1) > SUM_LIMIT
        return unequal


def leak(weights: Floats, mask: Bools) -> Leak:
    """Measures how much of a map (queries, keys) leaks through a mask of the same shape."""
    hidden = np.where(mask, np.float32(0), weights)
    return Leak(hidden.sum(-1), weights.sum(-1), int((~mask).sum()), int((weights == 0).sum()))
