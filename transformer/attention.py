"""Attention (section 3.2): masks, equation 1, the cache of one request, and several heads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.config import AttentionKind, ModelConfig, ScoreName
from transformer.encodings import ALL_HEADS, BiasRule, Heads, PositionalEncoding
from transformer.hooks import At, Hooks

MOST_SUMS = 1 << 24
"""Most sums of query and key, number by number, that additive scores hold at a time."""
KeyValue = tuple[Tensor, Tensor]
"""Keys and values, (batch, key heads, length, d_head) each."""


@dataclass(frozen=True)
class AttentionMask:
    """Which query may attend to which key, kept as a rule: memory is linear in the length, not
    quadratic."""

    key_padding: Tensor | None = (
        None  # (batch, keys) bool, True for tokens; None if nothing is padded
    )
    causal: bool = False  # whether query i sees only keys 0 to ``first_query`` + i (section 3.2.3)
    first_query: int = (
        0  # position of the first query in its own sequence; above 0 if earlier ones are cached
    )
    # (batch, length) numbers of the texts that share a row; a query sees the keys of its own text
    # only. None if every row is one text.
    texts: Tensor | None = None

    def dense(self, queries: int, keys: int, device: torch.device | str = "cpu") -> Tensor | None:
        """The mask as one matrix, (batch or 1, 1, queries, keys) bool; None if nothing is
        masked."""
        masks = []
        if self.causal and self.first_query + 1 < keys:
            masks.append(causal_mask(queries, keys, self.first_query, device)[None, None])
        if self.key_padding is not None:
            masks.append(self.key_padding[:, None, None, :].expand(-1, 1, queries, keys))
        if self.texts is not None:
            masks.append(self.texts[:, None, :, None] == self.texts[:, None, None, :])
        if not masks:
            return None
        mask = masks[0]
        for further in masks[1:]:
            mask = mask & further
        return mask


NO_MASK = AttentionMask()


@dataclass(frozen=True, eq=False)
class LocalWindow:
    """Where each query looks, predicted before it looks: local attention (Luong et al. 2015,
    section 3.2).

    A query sees the keys at most ``half_width`` from its centre. The softmax over these is
    multiplied by a Gaussian around the centre (equation 10), so that a row sums to less than 1.
    """

    centres: Tensor  # (…, queries) p_t: positions among the keys, counted from 0, not rounded
    half_width: int  # D, in positions

    def cells(self, keys: int, rows: slice | None = None) -> tuple[Tensor, Tensor]:
        """(…, rows, keys) of all queries or some: the window [p_t − D, p_t + D], bool; and the
        Gaussian, exp(−(s − p_t)² / 2σ²) with σ = D / 2."""
        centres = self.centres[..., rows or slice(None), None]
        distances = torch.arange(keys, device=centres.device) - centres
        return distances.abs() <= self.half_width, torch.exp(
            -2.0 * (distances / self.half_width).square()
        )


def padding_mask(token_ids: Tensor, pad_id: int) -> Tensor | None:
    """(batch, length) bool, False for the padding at the end; None if nothing is padded.

    A ``pad_id`` before a token counts as a token.
    """
    mask = (token_ids != pad_id).flip(-1).cumsum(-1).flip(-1) > 0
    return None if bool(mask.all()) else mask


def causal_mask(
    queries: int, keys: int, first_query: int = 0, device: torch.device | str = "cpu"
) -> Tensor:
    """(queries, keys) bool: row i may attend to keys 0 to ``first_query`` + i (section 3.2.3)."""
    query_positions = torch.arange(first_query, first_query + queries, device=device)
    return torch.arange(keys, device=device) <= query_positions[:, None]


@dataclass(frozen=True, eq=False)
class ScoreRule:
    """How scores come from queries and keys, before the bias and the mask.

    "scaled_dot": q · k / √d_k (equation 1). "dot": q · k, as Luong et al. (2015, section 3.1).
    "additive": vᵀ tanh(q + k), for q = W₁ h and k = W₂ m (Bahdanau et al. 2015, appendix A.1.2); no
    fused kernel has it.
    """

    name: ScoreName = "scaled_dot"
    vector: Tensor | None = None  # (heads, d_head) v of additive scores

    def divisor(self, d_head: int) -> float:
        """What divides q · k."""
        return math.sqrt(d_head) if self.name == "scaled_dot" else 1.0

    def scores(self, query: Tensor, key: Tensor, heads: Heads = ALL_HEADS) -> Tensor:
        """(…, queries, keys) for (…, queries, d_head) and (…, keys, d_head) of these heads."""
        if self.vector is None:
            return query @ key.transpose(-1, -2) / self.divisor(query.shape[-1])
        vector = self.vector[heads][..., None, :, None]
        blocks = torch.split(query, max(1, MOST_SUMS // max(1, key.numel())), dim=-2)
        parts = [(block[..., None, :] + key[..., None, :, :]).tanh() @ vector for block in blocks]
        return torch.cat(parts, dim=-3)[..., 0]


SCALED_DOT = ScoreRule()


def attention_weights(
    scores: Tensor,  # (…, queries, keys)
    mask: Tensor | None = None,  # bool, True = may attend, broadcast to the scores
    factors: Tensor | None = None,  # those of local attention, which multiply the weights
) -> Tensor:
    """(…, queries, keys) softmax of the unmasked scores, exactly 0 elsewhere; zeros if a row sees
    no key."""
    if mask is None:
        weights = scores.softmax(-1)
    else:
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return weights if factors is None else weights * factors.to(weights.dtype)


def shared(x: Tensor, group: int) -> Tensor:
    """(…, key heads, keys, d_head) → (…, heads, keys, d_head): each for all heads of its group."""
    return x if group == 1 else x.repeat_interleave(group, dim=-3)


def attend(
    query: Tensor,  # (batch, heads, queries, d_head), the new rows only, after rotation if any
    key: Tensor,  # (batch, key heads, keys, d_head), all keys so far
    value: Tensor,  # (batch, key heads, keys, d_head)
    mask: AttentionMask = NO_MASK,
    bias: Tensor
    | None = None,  # (batch or 1, heads, queries, keys) what positions add to the scores
    score: ScoreRule = SCALED_DOT,
    window: LocalWindow | None = None,
    hooks: Hooks | None = None,
    name: str = "",  # what hooks call this attention
    divided: bool = False,  # whether the bias is divided by √d_k, as q · k is
) -> Tensor:
    """softmax(Q Kᵀ / √d_k + bias) V (equation 1), (batch, heads, queries, d_head).

    Fused, without the weights in memory, unless somebody looks at them or no kernel computes the
    scores. Where a group of heads reads the same keys, head h reads those of key head h // group.
    """
    queries = query.shape[2]
    keys = key.shape[2]
    group = query.shape[1] // key.shape[1]
    unfused = hooks is not None and bool({name, ""} & hooks.unfused)
    if not unfused and score.vector is None and window is None:
        scale = None if score.name == "scaled_dot" else 1.0
        fused = partial(F.scaled_dot_product_attention, scale=scale, enable_gqa=group > 1)
        alone = mask.causal and mask.key_padding is None and mask.texts is None
        if alone and bias is None and queries == keys > 1 and mask.first_query == 0:
            return fused(query, key, value, is_causal=True)
        dense = mask.dense(queries, keys, query.device)
        if bias is not None:
            dense = bias if dense is None else bias.masked_fill(~dense, -torch.inf)
        return fused(query, key, value, attn_mask=dense)
    key = shared(key, group)
    value = shared(value, group)
    visible = mask.dense(queries, keys, query.device)
    factors = None
    if window is not None:
        near, factors = window.cells(keys)
        visible = near if visible is None else near & visible
    scores = score.scores(query, key)
    if bias is not None:
        scores = scores + bias
    if hooks is not None and unfused:
        at = At(mask.first_query, bias=None if divided else bias)
        scores = hooks(f"{name}.scores", scores, at)
        if visible is None:
            visible = torch.ones(1, 1, queries, keys, dtype=torch.bool, device=query.device)
        visible = hooks(f"{name}.mask", visible, at)
    weights = attention_weights(scores, visible, factors)
    if hooks is not None and unfused:
        weights = hooks(f"{name}.weights", weights, At(mask.first_query, mask=visible))
    return weights.to(value.dtype) @ value


class LayerCache:
    """Keys and values of one attention for one request."""

    def __init__(self, grows: bool) -> None:
        self.grows, self.length = grows, 0  # whether every update appends, as in self-attention
        self.fixed: KeyValue | None = None  # those of cross-attention, which are computed once
        self._buffers: KeyValue | None = None

    def update(self, key: Tensor, value: Tensor) -> KeyValue:
        """All keys and values, after those before the new ones."""
        new = (key, value)
        start = self.length
        self.length += key.shape[2]
        if not self.grows:
            self.fixed = new
            return new
        capacity = 0 if self._buffers is None else self._buffers[0].shape[2]
        if self._buffers is None or self.length > capacity:  # buffers with room for all rows double
            old = self._buffers
            room = max(64, 2 * capacity, self.length)
            key, value = (x.new_empty(*x.shape[:2], room, x.shape[3]) for x in new)
            self._buffers = key, value
            for buffer, rows in zip((key, value), old or (), strict=False):
                buffer[:, :, :capacity] = rows
        key, value = self._buffers
        key[:, :, start : self.length], value[:, :, start : self.length] = new
        return key[:, :, : self.length], value[:, :, : self.length]

    def select(self, rows: Tensor) -> None:
        """Keeps the given rows of the batch, repeated or reordered; copies of one source share its
        memory."""
        if self.fixed is not None:
            alone = len(self.fixed[0]) == 1
            key, value = (x.expand(len(rows), -1, -1, -1) if alone else x[rows] for x in self.fixed)
            self.fixed = key, value
        elif self._buffers is not None:
            key, value = (
                buffer.new_empty(len(rows), *buffer.shape[1:]) for buffer in self._buffers
            )
            for buffer, selected in zip(self._buffers, (key, value), strict=True):
                torch.index_select(
                    buffer[:, :, : self.length], 0, rows, out=selected[:, :, : self.length]
                )
            self._buffers = key, value


class Cache:
    """What a decoder keeps of one request, so that each step computes only one row.

    Attributes:
        decoder: Keys and values of masked self-attention, by layer.
        cross: Those of cross-attention.
        length: Number of positions kept.
        state: (batch, d_model) of a recurrent decoder after the last position; None before the
            first.
    """

    def __init__(self, config: ModelConfig) -> None:
        depths = {kind: site.n_layers for kind, site in config.sites.items()}
        self.decoder = [LayerCache(grows=True) for _ in range(depths.get(AttentionKind.DECODER, 0))]
        self.cross = [LayerCache(grows=False) for _ in range(depths.get(AttentionKind.CROSS, 0))]
        self.length = 0
        self.state: Tensor | None = None

    def advance(self, positions: int, state: Tensor | None = None) -> None:
        """Counts new positions; a recurrent decoder's state after them, (batch, d_model)."""
        self.length = self.length + positions
        self.state = state

    def select(self, rows: Tensor, *, same_source: bool = False) -> None:
        """Keeps, repeats or reorders rows of the batch, as a beam does with its hypotheses.

        ``rows`` (new batch,) are indices into the present batch. With ``same_source`` every row
        keeps its source sentence, so that cross-attention need not change.
        """
        for cache in (*self.decoder, *(() if same_source else self.cross)):
            cache.select(rows)
        if self.state is not None:
            self.state = self.state.index_select(0, rows)


class Attention(nn.Module):
    """Base of every attention of a model, whatever its scores."""

    kind: AttentionKind  # which attention of the model it is
    layer: int  # index of its layer, from 0
    n_heads: int  # its heads
    n_key_heads: int  # its heads of keys and values, each read by a group of heads
    out_proj: nn.Linear  # W^O, which maps the heads' outputs, side by side, back to d_model


class MultiHeadAttention(Attention):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O (section 3.2.2)."""

    def __init__(self, config: ModelConfig, kind: AttentionKind, layer: int) -> None:
        super().__init__()
        site = config.sites[kind]
        self.kind, self.layer, self.n_heads = kind, layer, config.n_heads
        self.n_key_heads = config.key_heads
        self.d_head = config.d_head
        self.name = site.paths[layer]
        self.score = ScoreRule(site.score)
        width = config.d_model
        heads = config.n_heads * config.d_head
        key_heads = config.key_heads * config.d_head
        biases = config.biases if config.attention_biases is None else config.attention_biases
        self.q_proj = nn.Linear(width, heads, biases)
        self.k_proj = nn.Linear(width, key_heads, biases)
        self.v_proj = nn.Linear(width, key_heads, biases)
        self.q_norm = self.k_norm = None
        if config.head_norm:
            self.q_norm = nn.RMSNorm(config.d_head, eps=config.norm_epsilon)
            self.k_norm = nn.RMSNorm(config.d_head, eps=config.norm_epsilon)
        self.out_proj = nn.Linear(heads, width, config.biases)
        # queries, keys and values of self-attention in one product (``transformer.packed``); None
        # while three products do it, as in training
        self.joined: Any = None

    def forward(
        self,
        x: Tensor,  # (batch, queries, d_model)
        memory: Tensor
        | None = None,  # (batch, keys, d_model) for cross-attention; None for self-attention
        *,
        # who may attend to whom, and the position of the first query
        mask: AttentionMask = NO_MASK,
        positions: PositionalEncoding | None = None,  # rotates queries and keys
        rule: BiasRule | None = None,  # adds a bias to the scores
        cache: LayerCache | None = None,  # keys and values of earlier calls; this call adds its own
        hooks: Hooks | None = None,  # who looks, and what changes the computation
    ) -> Tensor:
        """(batch, queries, d_model): attends from ``x`` to ``memory``, or to ``x`` itself."""
        first = mask.first_query

        def split(x: Tensor) -> Tensor:
            """(batch, length, width) → (batch, heads, length, d_head)."""
            return x.view(*x.shape[:2], -1, self.d_head).transpose(1, 2)

        # gradients need three products, and so do parameters that were moved, rounded or replaced
        # since
        maps = (self.q_proj, self.k_proj, self.v_proj)
        product = self.joined
        if (
            product is not None
            and not any(linear.weight.requires_grad for linear in maps)
            and product.is_of(*maps)
        ):
            widths = [linear.out_features for linear in maps]
            joined = product(x).split(widths, dim=-1)
            query, *key_value = (split(rows) for rows in joined)
        else:
            query = split(self.q_proj(x))
            key_value = []

        if cache is not None and cache.fixed is not None:
            key, value = cache.fixed  # of cross-attention, which no positions rotate
        else:
            source = x if memory is None else memory
            key, value = key_value or (split(self.k_proj(source)), split(self.v_proj(source)))
            if self.q_norm is not None and self.k_norm is not None:
                query = self.q_norm(query)
                key = self.k_norm(key)
            if positions is not None:
                query = positions.rotate(query, first)
                key = positions.rotate(key, first)
            key, value = (key, value) if cache is None else cache.update(key, value)
        if hooks is not None:
            at = At(first)
            hooks.constants(
                self.name, padding=mask.key_padding, bias=None if rule is None else rule.table
            )
            query = hooks(f"{self.name}.query", query, at)
            key = hooks(f"{self.name}.key", key)
            value = hooks(f"{self.name}.value", value)
        bias = None if rule is None else rule.matrix(query, key.shape[2], first)
        divided = rule is not None and rule.divided
        heads = attend(query, key, value, mask, bias, self.score, None, hooks, self.name, divided)
        if hooks is not None:
            heads = hooks(f"{self.name}.heads", heads, at)
        return self.out_proj(heads.transpose(1, 2).flatten(2))  # (batch, queries, d_model)
