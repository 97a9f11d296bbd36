"""Equation 1 written out: scores, then weights. Fused attention is checked against these."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def attention_scores(query: Tensor, key: Tensor, bias: Tensor | None = None) -> Tensor:
    """Q Kᵀ / √d_k + bias, before the mask (equation 1).

    Args:
        query: (…, queries, d_head).
        key: (…, keys, d_head).
        bias: Numbers to add, broadcast to (…, queries, keys).

    Returns:
        (…, queries, keys).
    """
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    return scores if bias is None else scores + bias


def attention_weights(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(scores) over the unmasked keys; a row that sees no key is all zeros.

    Args:
        scores: (…, queries, keys).
        mask: Bool, True = may attend, broadcast to the scores.

    Returns:
        (…, queries, keys); a masked weight is exactly 0.
    """
    if mask is None:
        return scores.softmax(-1)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
