"""Alternative arithmetic on the vectors of one query: other scores and weights that a head could use.

The model computes none of this. Every function takes the vectors of one query (d_head,) and its keys
(keys, d_head) and returns scores or weights (keys,); the mask is True for keys that the query may attend to.
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
    """How close a softmax is to a hard choice, and how much gradient it lets through.

    Attributes:
        largest: The largest weight.
        entropy: −Σ w ln w as a share of the entropy of equal weights over the visible keys; 0 with one key.
        gradient: ‖∂w/∂s‖, the Frobenius norm of the softmax's Jacobian diag(w) − w wᵀ.
    """

    largest: float
    entropy: float
    gradient: float


def softmax(scores: Floats, mask: BoolArray) -> Doubles:
    """exp(s) / Σ exp(s) over the visible keys; all zeros if no key is visible.

    Args:
        scores: (keys,).
        mask: (keys,).
    """
    if not mask.any():
        return np.zeros(len(scores))
    powers = np.where(mask, np.exp(np.where(mask, scores, 0.0) - scores[mask].max()), 0.0)
    return powers / powers.sum()


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


def without_projections(x: Floats, sources: Floats) -> Doubles:
    """x·x_j / √d_model: compares the sub-layer's inputs without W_Q and W_K.

    Args:
        x: (d_model,).
        sources: (keys, d_model).
    """
    return sources.astype(np.float64) @ x.astype(np.float64) / np.sqrt(len(x))


def additive(query: Floats, key: Floats) -> Doubles:
    """vᵀ tanh(W_1 q + W_2 k) with W_1 = W_2 = identity and v = (1, …, 1) / √d_k.

    Bahdanau et al. 2015, appendix A.1.2, where all three are learned.

    Args:
        query: (d_head,).
        key: (keys, d_head).
    """
    return np.tanh(query.astype(np.float64) + key).sum(-1) / np.sqrt(len(query))


def bilinear_weights(d_head: int) -> Doubles:
    """The diagonal of a toy W (d_head,): falls evenly from 2 in the first dimension to 0 in the last."""
    return np.linspace(2.0, 0.0, d_head)


def bilinear(query: Floats, key: Floats) -> Doubles:
    """q W kᵀ / √d_k with the diagonal W of ``bilinear_weights`` (Luong 2015, "general")."""
    return key.astype(np.float64) @ (query * bilinear_weights(len(query))) / np.sqrt(len(query))


def hard(scores: Floats, mask: BoolArray) -> Doubles:
    """Weight 1 on the visible key with the largest score, 0 elsewhere: an arg max without a gradient."""
    weights = np.zeros(len(scores))
    if mask.any():
        weights[int(np.argmax(np.where(mask, scores, -np.inf)))] = 1.0
    return weights


def local_mask(mask: BoolArray, centre: int, radius: int) -> BoolArray:
    """The mask of visible keys within ``radius`` of a centre (Luong 2015, "local-m").

    Args:
        mask: (keys,).
        centre: Position of the middle key, from 0.
        radius: Radius in tokens.
    """
    return mask & (np.abs(np.arange(len(mask)) - centre) <= radius)


def joined(products: tuple[Floats, Floats], d_head: int) -> Doubles:
    """Scores of one head of double width, with the queries and keys of two heads side by side.

    [q, q']·[k, k'] = q·k + q'·k', divided by √(2 d_k).

    Args:
        products: q·k and q'·k', each (keys,).
        d_head: Width of one of the two heads.
    """
    return (products[0].astype(np.float64) + products[1]) / np.sqrt(2 * d_head)


def taken(weights: Floats, value: Floats) -> Doubles:
    """The weighted sum of values Σ w_j v_j (d_head,)."""
    return weights.astype(np.float64) @ value.astype(np.float64)
