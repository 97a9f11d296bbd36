"""Scaled dot-product and multi-head attention (section 3.2), fused or explicit."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.model.cache import Cache, KeyValue
from transformer.model.config import TransformerConfig
from transformer.model.encodings.biases import BiasRule
from transformer.model.encodings.positions import PositionalEncoding
from transformer.model.masks import AttentionMask
from transformer.model.scores import attention_scores, attention_weights
from transformer.model.sites import AttentionKind
from transformer.model.watching.hooks import Hook
from transformer.model.watching.observer import Observer

NO_MASK = AttentionMask()


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: AttentionMask, bias: Tensor | None
) -> Tensor:
    """softmax(Q Kᵀ / √d_k + bias) V, without the weights in memory (equation 1)."""
    queries, keys = query.shape[2], key.shape[2]
    if mask.causal and mask.key_padding is None and bias is None and queries == keys > 1:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)
    dense = mask.dense(queries, keys, query.device)
    if bias is not None:
        dense = bias if dense is None else bias.masked_fill(~dense, -torch.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=dense)


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O (section 3.2.2).

    Args:
        config: Sizes.
        kind: Which of the three attentions of the model this is.
        layer: Index of the layer, from 0.

    Attributes:
        joined: Queries, keys and values of self-attention in one product, (batch, length, d_model) →
            (batch, length, 3 d_model); None if three products are as fast.
    """

    def __init__(self, config: TransformerConfig, kind: AttentionKind, layer: int) -> None:
        super().__init__()
        self.kind, self.layer = kind, layer
        self.n_heads = config.n_heads
        self.q_proj = nn.Linear(config.d_model, config.d_model)
        self.k_proj = nn.Linear(config.d_model, config.d_model)
        self.v_proj = nn.Linear(config.d_model, config.d_model)
        self.out_proj = nn.Linear(config.d_model, config.d_model)
        self.joined: Callable[[Tensor], Tensor] | None = None

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: AttentionMask = NO_MASK,
        positions: PositionalEncoding | None = None,
        cache: Cache | None = None,
        observer: Observer | None = None,
    ) -> Tensor:
        """Attends from ``x`` to ``memory``, or to ``x`` itself.

        Args:
            x: (batch, queries, d_model).
            memory: (batch, keys, d_model) for cross-attention; None for self-attention.
            mask: Who may attend to whom, and the position of the first query.
            positions: Encoding that rotates queries and keys or adds a bias to the scores.
            cache: Keys and values of earlier calls; this call adds its own.
            observer: Who watches, and the hooks to apply.

        Returns:
            (batch, queries, d_model).
        """
        query, project_source = self._project(x, memory)
        rule = None
        if positions is not None:
            query, rule = positions.rotate(query, mask.first_query), positions.bias(self.layer)

        def project() -> KeyValue:
            key, value = project_source()
            return key if positions is None else positions.rotate(key, mask.first_query), value

        key, value = project() if cache is None else cache.update(project)
        output = self._attend(query, key, value, mask, rule, observer)
        return self.out_proj(output.transpose(1, 2).flatten(2))  # (batch, queries, d_model)

    def _project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Callable[[], KeyValue]]:
        """Queries (batch, heads, queries, d_head), and a function that computes keys and values if needed."""
        if self.joined is not None:
            query, key, value = map(self._split, self.joined(x).chunk(3, dim=-1))
            return query, lambda: (key, value)
        source = x if memory is None else memory
        query = self._split(self.q_proj(x))
        return query, lambda: (self._split(self.k_proj(source)), self._split(self.v_proj(source)))

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: AttentionMask,
        rule: BiasRule | None,
        observer: Observer | None,
    ) -> Tensor:
        bias = None if rule is None else bias_matrix(rule, query, key, mask.first_query)
        if observer is None:
            return fused_attention(query, key, value, mask, bias)
        hooks = observer.hooks_for(self.kind, self.layer)
        replaced = None
        if hooks:
            output, replaced = hooked_attention(query, key, value, mask, bias, hooks, (self.kind, self.layer))
        else:
            output = fused_attention(query, key, value, mask, bias)
        observer.attention(self.kind, self.layer, query, key, value, output, mask, rule, replaced)
        return output

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)  # (batch, heads, length, d_head)


def bias_matrix(rule: BiasRule, query: Tensor, key: Tensor, first_query: int) -> Tensor:
    """(batch or 1, heads, queries, keys): the rule's bias for these queries and all keys."""
    rows = torch.arange(first_query, first_query + query.shape[2], device=query.device)
    bias = rule.scores(query, rows, torch.arange(key.shape[2], device=query.device)).to(query.dtype)
    return bias if bias.dim() == 4 else bias[None]  # the fused kernel takes no mask of three dimensions


def hooked_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: AttentionMask,
    bias: Tensor | None,
    hooks: tuple[Hook, ...],
    place: tuple[AttentionKind, int],
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Explicit attention whose scores and weights pass through hooks.

    Returns:
        The output (batch, heads, queries, d_head), and what the hooks did: rows that differ from
        the model's own (batch, heads, queries) bool, and the weights used (batch, heads, queries, keys).
    """
    kind, layer = place
    first, queries = mask.first_query, query.shape[2]
    rows = torch.arange(first, first + queries, device=query.device)
    dense = mask.dense(queries, key.shape[2], query.device)
    scores = attention_scores(query, key, bias)
    own = attention_weights(scores, dense)
    for hook in (hook for hook in hooks if hook.on == "scores"):
        scores = hook.apply(scores, kind=kind, layer=layer, query_positions=rows)
    weights = attention_weights(scores, dense)
    for hook in (hook for hook in hooks if hook.on == "weights"):
        weights = hook.apply(weights, kind=kind, layer=layer, query_positions=rows)
    return weights @ value, ((weights != own).any(-1), weights)
