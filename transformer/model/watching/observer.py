"""The questions that a running model asks whoever observes it, and the answers that change it.

The model asks its observer at every place where a run can be watched or changed, and continues with the
answer. ``Bystander`` answers with what the model has computed itself; ``HookCarrier`` and
``transformer.interventions`` answer with something else; a recorder passes the question on and keeps
what was asked and answered. So the forward pass knows neither recordings nor interventions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from transformer.model.encodings.biases import BiasRule
from transformer.model.encodings.positions import PositionalEncoding
from transformer.model.masks import AttentionMask, Focus
from transformer.model.scores import SCALED_DOT, ScoreRule, attention_weights, bias_matrix
from transformer.model.sites import AttentionKind, Side, Sublayer

Norm = Callable[[Tensor], Tensor]
"""A LayerNorm, or what stands in its place."""


class AttentionInputs(NamedTuple):
    """All that one attention sub-layer computes its output from."""

    kind: AttentionKind  # which attention
    layer: int  # its layer, from 0
    query: Tensor  # (batch, heads, queries, d_head), the new rows only, after rotation if any
    key: Tensor  # (batch, heads, keys, d_head), all keys so far
    value: Tensor  # (batch, heads, keys, d_head)
    mask: AttentionMask  # who may attend to whom, and the position of the first query
    rule: BiasRule | None  # numbers that positions add to the scores, or None
    score: ScoreRule = SCALED_DOT  # how scores come from queries and keys
    # where each query looks, centres (batch, 1, queries); None if it may look everywhere
    focus: Focus | None = None

    @property
    def first(self) -> int:
        """Position of the first query, from 0."""
        return self.mask.first_query

    @property
    def rows(self) -> Tensor:
        """(queries,) positions of the queries, from 0."""
        return torch.arange(self.first, self.first + self.query.shape[2], device=self.query.device)

    def bias(self) -> Tensor | None:
        """(batch or 1, heads, queries, keys): what the rule adds; None without a rule."""
        return None if self.rule is None else bias_matrix(self.rule, self.query, self.key, self.first)

    def visible(self) -> Tensor | None:
        """(batch or 1, 1, queries, keys) bool: the mask; None if nothing is masked."""
        keys = self.key.shape[2]
        mask = self.mask.dense(self.query.shape[2], keys, self.query.device)
        if self.focus is None:
            return mask
        return self.focus.visible(keys) if mask is None else self.focus.visible(keys) & mask

    def scores(self) -> Tensor:
        """(batch, heads, queries, keys): by the rule, with bias, before the mask."""
        scores, bias = self.score.scores(self.query, self.key), self.bias()
        return scores if bias is None else scores + bias

    def fused(self) -> Tensor:
        """(batch, heads, queries, d_head): the output, by fused attention where there is any."""
        if self.focus is None:
            return self.score.attend(self.query, self.key, self.value, self.mask, self.bias())
        weights = attention_weights(self.scores(), self.visible(), self.focus)
        return weights.to(self.value.dtype) @ self.value


class Attended(NamedTuple):
    """Result of one attention sub-layer."""

    output: Tensor  # (batch, heads, queries, d_head), what W_O receives
    own: Tensor | None = None  # the same before outputs of heads were changed; None if none was
    # What hooks did: rows that differ from the model's own (batch, heads, queries) bool, and the weights used
    # (batch, heads, queries, keys). None without hooks.
    replaced: tuple[Tensor, Tensor] | None = None


class Entered(NamedTuple):
    """The input of a stack, the two terms of its sum (sections 3.4 and 3.5), and what normalises the sum."""

    side: Side  # "encoder" or "decoder"
    first: int  # position of the first new row, from 0
    tokens: Tensor  # (batch, new, d_model) token embeddings
    positions: Tensor | None  # (new, d_model) encoding added to them; None if nothing is added
    total: Tensor  # (batch, new, d_model) the input of the first layer: the sum, or its norm
    norm: Norm = nn.Identity()  # what the sum passes: a norm, or nothing

    def made_of(self, tokens: Tensor) -> Tensor:
        """(batch, new, d_model) the input if these were the token embeddings."""
        return self.norm(tokens if self.positions is None else tokens + self.positions)


class Passed(NamedTuple):
    """The stream around one sub-layer; each tensor is (batch, new, d_model)."""

    sublayer: Sublayer  # which sub-layer
    first: int  # position of the first new row, from 0
    stream: Tensor  # the stream before it
    read: Tensor  # what it read: with pre-norm, LayerNorm(stream)
    update: Tensor  # what it added
    output: Tensor  # the stream after it


class Observer(Protocol):
    """Observes one request; passed along with the KV cache, and never shared.

    The model continues with what each method returns.
    """

    def encoding(self, side: Side, own: PositionalEncoding) -> PositionalEncoding:
        """The positional encoding of a stack."""

    def embedding(self, entered: Entered) -> Tensor:
        """(batch, new, d_model): the input of a stack."""

    def attention(self, asked: AttentionInputs) -> Attended:
        """The output of an attention sub-layer, before W_O."""

    def norm(self, place: Sublayer | Side, own: Norm) -> Norm:
        """The LayerNorm of a sub-layer, or the one at the end of a side's stack."""

    def update(self, sublayer: Sublayer, own: Tensor) -> Tensor:
        """(batch, new, d_model): what a sub-layer adds to the stream."""

    def residual(self, passed: Passed) -> Tensor:
        """(batch, new, d_model): the stream after a sub-layer."""

    def memory(self, own: Tensor) -> Tensor:
        """(batch, source, d_model): the encoder's output."""


class Bystander:
    """Leaves everything as the model computes it; the base of all observers."""

    def encoding(self, side: Side, own: PositionalEncoding) -> PositionalEncoding:
        """The stack's own encoding."""
        return own

    def embedding(self, entered: Entered) -> Tensor:
        """The sum of embedding and encoding, normalised if the config says so."""
        return entered.total

    def attention(self, asked: AttentionInputs) -> Attended:
        """The output of fused attention."""
        return Attended(asked.fused())

    def norm(self, place: Sublayer | Side, own: Norm) -> Norm:
        """The model's own LayerNorm."""
        return own

    def update(self, sublayer: Sublayer, own: Tensor) -> Tensor:
        """The update that the sub-layer computed."""
        return own

    def residual(self, passed: Passed) -> Tensor:
        """The stream that left the sub-layer."""
        return passed.output

    def memory(self, own: Tensor) -> Tensor:
        """The encoder's own output."""
        return own


UNWATCHED = Bystander()
"""Watches nothing and changes nothing; it holds no state, so all requests may share it."""
