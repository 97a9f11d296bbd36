"""Interventions in attention: functions that replace scores or weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

from transformer.model.config import TransformerConfig
from transformer.model.sites import AttentionKind


class HookFunction(Protocol):
    """Replaces scores (scaled, before the mask) or weights; returns the same shape."""

    def __call__(self, values: Tensor, *, kind: AttentionKind, layer: int, query_positions: Tensor) -> Tensor:
        """Values (batch, heads, queries, keys); query_positions (queries,), counted from 0."""


@dataclass(frozen=True)
class Hook:
    """An intervention in attention. Layers without a hook keep running fused.

    Attributes:
        function: Receives and returns (batch, heads, queries, keys). During decoding it sees one query at a
            time with the keys so far; in a forced pass it sees all queries at once.
        on: "scores" (scaled, before the mask) or "weights" (after the softmax).
        kind: The attention that the hook acts on; None for all three.
        layer: The layer that the hook acts on, from 0; None for all.

    Raises:
        ValueError: ``on`` is neither "scores" nor "weights".
    """

    function: HookFunction
    on: Literal["scores", "weights"] = "weights"
    kind: AttentionKind | None = None
    layer: int | None = None

    def __post_init__(self) -> None:
        if self.on not in ("scores", "weights"):
            raise ValueError(f"A hook acts on 'scores' or 'weights', not on {self.on!r}.")

    def acts_on(self, kind: AttentionKind, layer: int) -> bool:
        """Whether the hook acts on this attention of this layer."""
        return self.kind in (None, kind) and self.layer in (None, layer)

    def apply(self, values: Tensor, *, kind: AttentionKind, layer: int, query_positions: Tensor) -> Tensor:
        """Calls the function.

        Raises:
            ValueError: The function returned another shape, or no tensor.
        """
        result = self.function(values, kind=kind, layer=layer, query_positions=query_positions)
        if not isinstance(result, Tensor):
            raise ValueError(
                f"A hook on {kind} attention returned {type(result).__name__}; it must return a tensor."
            )
        if result.shape != values.shape:
            raise ValueError(
                f"A hook on {kind} attention returned shape {tuple(result.shape)}; "
                f"it must keep {tuple(values.shape)}."
            )
        return result


def as_hooks(hooks: Iterable[Hook | HookFunction]) -> tuple[Hook, ...]:
    """Turns bare functions into hooks on the weights of every layer."""
    return tuple(hook if isinstance(hook, Hook) else Hook(hook) for hook in hooks)


def check_places(hooks: Sequence[Hook], config: TransformerConfig) -> None:
    """Raises ValueError if a hook acts on no attention of the model."""
    places = [(kind, layer) for kind, site in config.sites.items() for layer in range(site.n_layers)]
    for hook in hooks:
        if not any(hook.acts_on(*place) for place in places):
            raise ValueError(f"A hook names layer {hook.layer}, which this model lacks; layers count from 0.")
