"""Other scores, masks and weights than a model's, of one query (d_head,) and its keys (keys,
d_head)."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer.view import Array, BoolArray

Doubles = NDArray[np.float64]
Floats = NDArray[np.floating]
SUM_LIMIT = 1e-5
"""Largest deviation from 1 with which a row still counts as summing to 1."""


class Saturation(NamedTuple):
    """Closeness of a softmax to a hard choice, and the gradient that it lets through."""

    largest: float  # the largest weight
    entropy: (
        float  # −Σ w ln w as a share of that of equal weights over the visible keys; 0 with one
    )
    gradient: float  # ‖∂w/∂s‖, the Frobenius norm of the softmax's Jacobian diag(w) − w wᵀ


def softmax(scores: Floats, mask: BoolArray) -> Doubles:
    """exp(s) / Σ exp(s) over the visible keys, of one row or several; a row without any is all
    zeros."""
    exact = np.where(mask, scores.astype(np.float64), -np.inf)
    most = exact.max(-1, keepdims=True, initial=-np.inf)
    powers = np.exp(exact - np.where(np.isfinite(most), most, 0.0))
    total = powers.sum(-1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)


def entropy(weights: NDArray[np.generic]) -> Doubles:
    """−Σ w ln w of each row, in nats."""
    exact = weights.astype(np.float64)
    total: Doubles = -(exact * np.log(np.where(exact > 0, exact, 1.0))).sum(-1)
    return total


def saturation(weights: Floats, mask: BoolArray) -> Saturation:
    """Largest weight, normalised entropy and ‖diag(w) − w wᵀ‖ of one row (section 3.2.1, footnote
    4)."""
    w = weights.astype(np.float64)
    visible = int(mask.sum())
    squares = float((w**2).sum())
    inner = squares - 2 * float((w**3).sum()) + squares**2
    share = float(abs(entropy(w))) / np.log(visible) if visible > 1 else 0.0
    return Saturation(float(w.max(initial=0.0)), share, float(np.sqrt(max(inner, 0.0))))


def without_projections(x: Floats, sources: Floats) -> Doubles:
    """x·x_j / √d_model: scores without W_Q and W_K.

    The values of such a head still come from W_V.
    """
    return sources.astype(np.float64) @ x.astype(np.float64) / np.sqrt(len(x))


def hard(scores: Floats, mask: BoolArray) -> Doubles:
    """Weight 1 on the visible key with the largest score, 0 elsewhere: an arg max without a
    gradient."""
    best = np.where(mask, scores, -np.inf).argmax()
    return ((np.arange(len(scores)) == best) & mask).astype(np.float64)


class Masking(StrEnum):
    """Place and way in which a mask acts on a row of scores; only the first is right (section
    3.2.3)."""

    MINUS_INFINITY = "minus-infinity"
    """Masked scores become −∞ before the softmax."""
    ZERO = "zero"
    """Masked scores become 0 before the softmax, so each still counts as e⁰ = 1."""
    NONE = "none"
    """No mask at all: masked keys take the weight that their scores give them."""
    AFTER = "after"
    """The softmax runs over all keys; masked weights become 0 after it."""


def masked_weights(scores: Array, mask: BoolArray, way: Masking) -> Array:
    """(queries, keys) weights that a way of masking gives; a row with no weight left is all
    zeros."""
    received = np.where(mask, scores, np.float32(0)) if way is Masking.ZERO else scores
    weights = softmax(received, mask | (way is not Masking.MINUS_INFINITY))
    return np.where(mask, weights, 0.0 if way is Masking.AFTER else weights).astype(np.float32)


class Leak(NamedTuple):
    """Share of a map that leaks through a mask."""

    masked: Array  # (queries,) weight that each row puts on masked keys
    sums: Array  # (queries,) sum of each row
    unequal: BoolArray  # (queries,) True for rows that do not sum to 1
    cells: int  # number of masked cells
    zeros: int  # number of weights that are exactly 0, masked or not


def leak(weights: Array, mask: BoolArray) -> Leak:
    """Measures how much of a map (queries, keys) leaks through a mask of the same shape."""
    hidden = np.where(mask, np.float32(0), weights).sum(-1)
    sums = weights.sum(-1)
    return Leak(
        hidden, sums, abs(sums - 1) > SUM_LIMIT, int((~mask).sum()), int((weights == 0).sum())
    )
