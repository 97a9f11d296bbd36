"""Alternative arithmetic on the vectors of one query: other scores and weights that a head could use.

The model computes none of this. Every function takes the vectors of one query (d_head,) and its keys
(keys, d_head), or the sub-layer's inputs x (d_model,) and sources (keys, d_model), and returns scores or
weights (keys,); the mask is True for keys that the query may attend to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Floats = NDArray[np.floating]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Saturation:
    """Closeness of a softmax to a hard choice, and the gradient that it lets through."""

    largest: float  # the largest weight
    # −Σ w ln w as a share of the entropy of equal weights over the visible keys; 0 with one key
    entropy: float
    gradient: float  # ‖∂w/∂s‖, the Frobenius norm of the softmax's Jacobian diag(w) − w wᵀ


def softmax(scores: Floats, mask: BoolArray) -> Doubles:
    """exp(s) / Σ exp(s) over the visible keys; all zeros if no key is visible."""
    if not mask.any():
        return np.zeros(len(scores))
    powers = np.where(mask, np.exp(np.where(mask, scores, 0.0) - scores[mask].max()), 0.0)
    return powers / powers.sum()


def overflow_from(dtype: type[np.floating]) -> float:
    """The score from which exp(score) is infinite in a type of numbers: 11.09 in float16, 88.7 in float32."""
    return float(np.log(np.float64(np.finfo(dtype).max)))


def unshifted(scores: Floats, mask: BoolArray, dtype: type[np.floating]) -> Floats:
    """exp(s) / Σ exp(s), rounded to a type of numbers at every step, without subtracting the largest score.

    NaN comes out for a key whose power is infinite; at least one key must be visible.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        powers = np.where(mask, np.exp(scores.astype(dtype)), dtype(0)).astype(dtype)
        shares: Floats = powers / powers.sum(dtype=dtype)
    return shares


def saturation(weights: Floats, mask: BoolArray) -> Saturation:
    """Largest weight, normalised entropy and gradient of one row (section 3.2.1, footnote 4).

    ‖diag(w) − w wᵀ‖² = Σ w² − 2 Σ w³ + (Σ w²)².
    """
    w = weights.astype(np.float64)
    squares = float((w**2).sum())
    inner = squares - 2 * float((w**3).sum()) + squares**2
    seen = w[w > 0]
    visible = int(mask.sum())
    entropy = float((seen * np.log(1 / seen)).sum()) / np.log(visible) if visible > 1 else 0.0
    return Saturation(float(w.max(initial=0.0)), entropy, float(np.sqrt(max(inner, 0.0))))


def plain_products(x: Floats, sources: Floats) -> Doubles:
    """x·x_j: compares the sub-layer's inputs as they are."""
    return sources.astype(np.float64) @ x.astype(np.float64)


def without_projections(x: Floats, sources: Floats) -> Doubles:
    """x·x_j / √d_model: scores without W_Q and W_K. The values of such a head still come from W_V."""
    return plain_products(x, sources) / np.sqrt(len(x))


def additive(query: Floats, key: Floats) -> Doubles:
    """vᵀ tanh(W_1 q + W_2 k) with W_1 = W_2 = identity and v = (1, …, 1) / √d_k.

    Bahdanau et al. 2015, appendix A.1.2, where all three are learned.
    """
    return np.tanh(query.astype(np.float64) + key).sum(-1) / np.sqrt(len(query))


def bilinear_weights(d_head: int) -> Doubles:
    """The diagonal of a toy W (d_head,): falls evenly from 2 in the first dimension to 0 in the last."""
    return np.linspace(2.0, 0.0, d_head)


def bilinear(query: Floats, key: Floats) -> Doubles:
    """q W kᵀ with the diagonal W of ``bilinear_weights``, not divided (Luong 2015, "general")."""
    return key.astype(np.float64) @ (query * bilinear_weights(len(query)))


def hard(scores: Floats, mask: BoolArray) -> Doubles:
    """Weight 1 on the visible key with the largest score, 0 elsewhere: an arg max without a gradient."""
    weights = np.zeros(len(scores))
    if mask.any():
        weights[int(np.argmax(np.where(mask, scores, -np.inf)))] = 1.0
    return weights


def local_mask(mask: BoolArray, centre: float, radius: int) -> BoolArray:
    """The mask of visible keys within ``radius`` tokens, D, of a centre (Luong 2015, section 3.2).

    Positions count from 0; the centre of "local-m" is the position of the query.
    """
    return mask & (np.abs(np.arange(len(mask)) - centre) <= radius)


def predicted_centre(query: Floats, keys: int) -> float:
    """S · sigmoid(vᵀ tanh(W q)): where "local-p" puts the middle of its window (Luong 2015, equation 9).

    S is the number of keys, q stands in the place of Luong's decoder state. Luong learns W and v; here
    W = identity and v = (1, …, 1) / √d_k. The formula counts positions from 1; the result, not a whole
    number, counts from 0 and lies above -1 and below ``keys`` - 1.
    """
    raised = np.tanh(query.astype(np.float64)).sum() / np.sqrt(len(query))
    return float(keys / (1 + np.exp(-raised)) - 1)


def bell(weights: Floats, centre: float, radius: int) -> Doubles:
    """Each weight times exp(−(j − p)² / 2σ²) with σ = D / 2: "local-p" (Luong 2015, equation 10).

    The weights are a softmax over the window of centre p, from 0, and radius D, at least 1. The results are
    not divided by their sum, so they sum to less than 1.
    """
    away = np.arange(len(weights)) - centre
    return weights.astype(np.float64) * np.exp(-2 * (away / radius) ** 2)


def joined(products: tuple[Floats, Floats], d_head: int) -> Doubles:
    """Scores of one head of double width, with the queries and keys of two heads side by side.

    [q, q']·[k, k'] = q·k + q'·k', divided by √(2 d_k), for the width d_k of one of the two heads.
    """
    return (products[0].astype(np.float64) + products[1]) / np.sqrt(2 * d_head)


def taken(weights: Floats, value: Floats) -> Doubles:
    """The weighted sum of values Σ w_j v_j (d_head,)."""
    return weights.astype(np.float64) @ value.astype(np.float64)
