"""What a running model tells whoever watches it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from transformer.model.biases import BiasRule
from transformer.model.hooks import Hook
from transformer.model.masks import AttentionMask
from transformer.model.sites import AttentionKind, Side, Sublayer


class Observer(Protocol):
    """Travels where the KV cache travels: one per request, shared by no one.

    ``HookCarrier`` only changes what the model computes; a recorder also keeps what it is told.
    """

    def hooks_for(self, kind: AttentionKind, layer: int) -> tuple[Hook, ...]:
        """The hooks that act on this attention of this layer."""

    def attention(
        self,
        kind: AttentionKind,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        output: Tensor,
        mask: AttentionMask,
        bias: BiasRule | None,
        replaced: tuple[Tensor, Tensor] | None,
    ) -> None:
        """New queries and outputs (batch, heads, queries, d_head), and the latest keys and values."""

    def embedding(self, side: Side, tokens: Tensor, positions: Tensor | None, total: Tensor) -> None:
        """Tokens and the input (batch, new, d_model), and the encoding (new, d_model) added between."""

    def residual(
        self, sublayer: Sublayer, stream: Tensor, read: Tensor, update: Tensor, output: Tensor
    ) -> None:
        """The stream around a sub-layer, each (batch, new, d_model)."""


class HookCarrier:
    """Brings hooks into a run and keeps nothing of it.

    Args:
        hooks: Interventions in attention.
    """

    def __init__(self, hooks: Sequence[Hook] = ()) -> None:
        self._hooks = tuple(hooks)

    def hooks_for(self, kind: AttentionKind, layer: int) -> tuple[Hook, ...]:
        """The hooks that act on this attention of this layer."""
        return tuple(hook for hook in self._hooks if hook.acts_on(kind, layer))

    def attention(
        self,
        kind: AttentionKind,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        output: Tensor,
        mask: AttentionMask,
        bias: BiasRule | None,
        replaced: tuple[Tensor, Tensor] | None,
    ) -> None:
        """Lets it pass."""

    def embedding(self, side: Side, tokens: Tensor, positions: Tensor | None, total: Tensor) -> None:
        """Lets it pass."""

    def residual(
        self, sublayer: Sublayer, stream: Tensor, read: Tensor, update: Tensor, output: Tensor
    ) -> None:
        """Lets it pass."""
