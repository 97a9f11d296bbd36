"""What a mask could have been: the same scores, masked in other ways than by −∞ before the softmax.

Only the first way does what a mask is for. These functions change no model; they rework the scores of a
trace, so that what each way would leak can be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
SUM_LIMIT = 1e-5
"""How far from 1 a row may sum and still be said to sum to 1."""


class Masking(StrEnum):
    """Where and how a mask acts on a row of scores (section 3.2.3 takes the first)."""

    MINUS_INFINITY = "minus-infinity"
    """Masked scores become −∞ before the softmax."""
    ZERO = "zero"
    """Masked scores become 0 before the softmax, which makes them e⁰ = 1 and not nothing."""
    AFTER = "after"
    """The softmax runs over all keys; masked weights become 0 after it."""


def masked_scores(scores: Floats, mask: Bools, way: Masking) -> Floats:
    """What the softmax receives.

    Args:
        scores: (queries, keys) scaled, before the mask.
        mask: (queries, keys), True where a query may attend.
        way: How the mask acts.
    """
    put = {Masking.MINUS_INFINITY: -np.inf, Masking.ZERO: 0.0}.get(way)
    return scores if put is None else np.where(mask, scores, np.float32(put))


def masked_weights(scores: Floats, mask: Bools, way: Masking) -> Floats:
    """The weights that a way of masking gives.

    Args:
        scores: (queries, keys) scaled, before the mask; all keys of each row.
        mask: (queries, keys), True where a query may attend.
        way: How the mask acts.

    Returns:
        (queries, keys); a row of which nothing is left is all zeros.
    """
    received = masked_scores(scores, mask, way).astype(np.float64)
    highest = received.max(-1, keepdims=True)
    powers = np.exp(received - np.where(np.isfinite(highest), highest, 0.0))
    total = powers.sum(-1, keepdims=True)
    weights = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
    return np.where(mask, weights, 0.0 if way is Masking.AFTER else weights).astype(np.float32)


@dataclass(frozen=True)
class Leak:
    """What a map lets through a mask.

    Attributes:
        masked: (queries,) weight that each row puts on masked keys.
        sums: (queries,) sum of each row.
        cells: Number of masked cells.
        zeros: Number of weights that are exactly 0, masked or not.
    """

    masked: Floats
    sums: Floats
    cells: int
    zeros: int

    @property
    def unequal(self) -> Bools:
        """(queries,) which rows do not sum to 1."""
        unequal: Bools = np.abs(self.sums - 1) > SUM_LIMIT
        return unequal


def leak(weights: Floats, mask: Bools) -> Leak:
    """Measures a map (queries, keys) against a mask of the same shape."""
    hidden = np.where(mask, np.float32(0), weights)
    return Leak(hidden.sum(-1), weights.sum(-1), int((~mask).sum()), int((weights == 0).sum()))
