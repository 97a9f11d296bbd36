"""Hooks: functions of Python that replace scores or weights of an attention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.sites import AttentionKind
from transformer.model.watching.explicit import UNALTERED, Alteration, explicit_attention
from transformer.model.watching.observer import Attended, AttentionInputs, Bystander


class HookFunction(Protocol):
    """Replaces scores (scaled, before the mask) or weights; returns the same shape."""

    def __call__(self, values: Tensor, *, kind: AttentionKind, layer: int, query_positions: Tensor) -> Tensor:
        """Values (batch, heads, queries, keys); query_positions (queries,), counted from 0."""


@dataclass(frozen=True)
class Hook:
    """A function that changes an attention. Layers without a hook keep running fused.

    A hook can do anything, so nothing can check it or write it into a file: the trace adopts the rows that it
    replaced. The values of ``transformer.interventions``, in contrast, are checked and saved.

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
        """True if the hook acts on this attention of this layer."""
        return self.kind in (None, kind) and self.layer in (None, layer)

    def apply(self, values: Tensor, *, kind: AttentionKind, layer: int, query_positions: Tensor) -> Tensor:
        """Calls the function.

        Raises:
            ValueError: The function returned a different shape, or no tensor.
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


def check_places(hooks: Sequence[Hook], config: ModelConfig) -> None:
    """Raises ValueError if a hook acts on no attention of the model."""
    places = [(kind, layer) for kind, site in config.sites.items() for layer in range(site.n_layers)]
    for hook in hooks:
        if not any(hook.acts_on(*place) for place in places):
            raise ValueError(f"A hook names layer {hook.layer}, which this model lacks; layers count from 0.")


class HookCarrier(Bystander):
    """Brings hooks into a run and keeps nothing of it."""

    def __init__(self, hooks: Sequence[Hook] = ()) -> None:
        self._hooks = tuple(hooks)

    def hooks_for(self, kind: AttentionKind, layer: int) -> tuple[Hook, ...]:
        """The hooks that act on this attention of this layer."""
        return tuple(hook for hook in self._hooks if hook.acts_on(kind, layer))

    def attention(self, asked: AttentionInputs) -> Attended:
        """The output of fused attention, or if a hook acts on it, of explicit attention with the hook."""
        hooks = self.hooks_for(asked.kind, asked.layer)
        return hooked_attention(asked, hooks) if hooks else super().attention(asked)


def hooked_attention(
    asked: AttentionInputs,  # what the attention computes its output from
    hooks: Sequence[Hook],  # the functions to call, in their order
    alteration: Alteration = UNALTERED,  # what else is changed, before the hooks
) -> Attended:
    """Explicit attention whose scores and weights pass through hooks."""
    rows = asked.rows

    def through(values: Tensor, on: str) -> Tensor:
        for hook in (hook for hook in hooks if hook.on == on):
            values = hook.apply(values, kind=asked.kind, layer=asked.layer, query_positions=rows)
        return values

    own = explicit_attention(asked, alteration)
    scores = through(own.scores, "scores")
    weights = through(own.weigh(scores), "weights")
    return Attended(weights @ asked.value, replaced=((weights != own.weigh(own.scores)).any(-1), weights))
