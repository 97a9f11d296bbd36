"""The calls that a running model makes to whatever observes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from transformer.model.encodings.biases import BiasRule
from transformer.model.masks import AttentionMask
from transformer.model.sites import AttentionKind, Side, Sublayer
from transformer.model.watching.hooks import Hook


class Observer(Protocol):
    """Observes one request; passed along with the KV cache, and never shared.

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
        """Gets new queries and outputs (batch, heads, queries, d_head), and the latest keys and values."""

    def embedding(self, side: Side, tokens: Tensor, positions: Tensor | None, total: Tensor) -> None:
        """Gets the input of a stack, and the two terms of its sum.

        Args:
            side: "encoder" or "decoder".
            tokens: (batch, new, d_model) token embeddings.
            positions: (new, d_model) encoding added to them; None if nothing is added.
            total: (batch, new, d_model) the sum.
        """

    def residual(
        self, sublayer: Sublayer, stream: Tensor, read: Tensor, update: Tensor, output: Tensor
    ) -> None:
        """Gets the stream around a sub-layer, each tensor (batch, new, d_model)."""


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
