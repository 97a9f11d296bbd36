"""Equation 1, fused and written out: scores, then weights. Fused attention is checked against these."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer.model.encodings.biases import BiasRule
from transformer.model.masks import AttentionMask


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: AttentionMask, bias: Tensor | None
) -> Tensor:
    """softmax(Q Kᵀ / √d_k + bias) V, without the weights in memory (equation 1)."""
    queries, keys = query.shape[2], key.shape[2]
    if mask.is_causal_alone and bias is None and queries == keys > 1:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)
    dense = mask.dense(queries, keys, query.device)
    if bias is not None:
        dense = bias if dense is None else bias.masked_fill(~dense, -torch.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=dense)


def bias_matrix(rule: BiasRule, query: Tensor, key: Tensor, first_query: int) -> Tensor:
    """(batch or 1, heads, queries, keys): the rule's bias for these queries and all keys."""
    rows = torch.arange(first_query, first_query + query.shape[2], device=query.device)
    bias = rule.scores(query, rows, torch.arange(key.shape[2], device=query.device)).to(query.dtype)
    return bias if bias.dim() == 4 else bias[None]  # the fused kernel takes no mask of three dimensions


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
