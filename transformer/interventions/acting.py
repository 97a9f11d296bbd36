"""Interventions at work: an observer that answers the model with changed values.

``Changes`` belongs to one pass over one request. It holds no state, so a new one can repeat the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from transformer.interventions import (
    DropNorm,
    DropSublayer,
    Embeddings,
    EncoderOutput,
    InAttention,
    InHeads,
    Intervention,
    Masking,
    NoPositions,
    Patch,
    PatchPlace,
    Stream,
    Unscaled,
)
from transformer.model.config import ModelConfig
from transformer.model.encodings.positions import PositionalEncoding
from transformer.model.sites import AttentionKind, Side, Sublayer
from transformer.model.watching.explicit import Alteration, explicit_attention
from transformer.model.watching.hooks import Hook, HookCarrier, hooked_attention
from transformer.model.watching.observer import Attended, AttentionInputs, Entered, Norm, Passed


@dataclass(frozen=True, eq=False)
class Change:
    """An intervention, and what it puts in, if that must be computed first."""

    value: Intervention  # the intervention
    # (heads, d_head) mean outputs, or (positions, width) of another run; None if none is needed
    material: Tensor | None = None


HeadChange = tuple[InAttention, Tensor | None]
"""A change of one head, and what it puts in."""
Act = Callable[[InAttention, Tensor, int, Tensor | None], Tensor]
"""(change, part of one head, head, what the change puts in) → the part after the change."""


@dataclass(frozen=True, eq=False)
class LayerChanges(Alteration):
    """All changes of one attention sub-layer, each in the order in which they were given.

    Masks change first, then scores, weights, and outputs of heads.
    """

    masks: tuple[Masking, ...]  # changes of the mask, for all heads
    heads: Mapping[int, tuple[HeadChange, ...]]  # changes by head, from 0

    def alone(self, head: int) -> LayerChanges:
        """The same for a tensor that holds this head only."""
        return replace(self, heads={0: self.heads.get(head, ())})

    def masked(self, own: Tensor | None, like: Tensor, first: int) -> Tensor | None:
        for change in self.masks:
            own = like.new_ones(like.shape[-2:], dtype=torch.bool) if own is None else own
            own = change.masked(own, first)
        return own

    def on_scores(self, own: Tensor, bias: Tensor | None, d_head: int) -> Tensor:
        def act(change: InAttention, part: Tensor, head: int, _material: Tensor | None) -> Tensor:
            return change.on_scores(part, None if bias is None else bias[..., head, :, :], d_head)

        return self._through(own, act)

    def on_weights(self, own: Tensor, mask: Tensor | None, first: int) -> Tensor:
        def act(change: InAttention, part: Tensor, _head: int, _material: Tensor | None) -> Tensor:
            visible = torch.ones_like(part, dtype=torch.bool) if mask is None else _of_head(mask, part)
            return change.on_weights(part, visible, first)

        return self._through(own, act)

    def put(self, own: Tensor, first: int) -> Tensor:
        """The outputs of all heads (…, heads, queries, d_head) as changed."""

        def act(change: InAttention, part: Tensor, _head: int, material: Tensor | None) -> Tensor:
            return change.put_out(part, first, material)

        return self._through(own, act)

    def _through(self, own: Tensor, act: Act) -> Tensor:
        """(…, heads, queries, width): each head's part after all of its changes."""
        made = own.clone()
        for head, changes in self.heads.items():
            for change, material in changes:
                made[..., head, :, :] = act(change, made[..., head, :, :], head, material)
        return made

    @cached_property
    def explicit(self) -> bool:
        """True if the layer leaves fused attention; changes of outputs alone do not need its weights."""
        return bool(self.masks) or bool(self._acting - {"output"})

    @property
    def changes_output(self) -> bool:
        """True if the output of a head is changed after it was computed."""
        return "output" in self._acting

    @cached_property
    def _acting(self) -> set[str]:
        return {change.acts_on for changes in self.heads.values() for change, _ in changes}


def _of_head(mask: Tensor, like: Tensor) -> Tensor:
    """A mask (…, 1, queries, keys), or without that dimension, as one head sees it."""
    return (mask[..., 0, :, :] if mask.dim() > like.dim() else mask).expand_as(like)


def layer_changes(
    changes: Iterable[Change], kind: AttentionKind, layer: int, n_heads: int
) -> LayerChanges | None:
    """The changes of one attention sub-layer; None without any."""
    masks, heads = [], dict[int, tuple[HeadChange, ...]]()
    for change in changes:
        value, material = change.value, change.material
        if isinstance(value, Masking) and value.changes(kind, layer):
            masks.append(value)
        if isinstance(value, InAttention):
            for i, head in enumerate(value.heads_of(kind, layer, n_heads)):
                own = material[i] if isinstance(value, InHeads) and material is not None else material
                heads[head] = _with(heads.get(head, ()), (value, own))
    return LayerChanges(tuple(masks), heads) if masks or heads else None


def _with(changes: tuple[HeadChange, ...], new: HeadChange) -> tuple[HeadChange, ...]:
    """Adds a change of a head; the division by √d_k is left out once, and before any temperature."""
    if not isinstance(new[0], Unscaled):
        return (*changes, new)
    return changes if any(isinstance(each, Unscaled) for each, _ in changes) else (new, *changes)


class Changes(HookCarrier):
    """Answers the model with changed values."""

    def __init__(
        self,
        changes: Sequence[Change],  # the changes, with what they put in
        config: ModelConfig,  # the model's config
        hooks: Sequence[Hook] = (),  # functions of Python that also act; after the changes, in each attention
    ) -> None:
        super().__init__(hooks)
        self._layers = {
            (kind, layer): found
            for kind, site in config.sites.items()
            for layer in range(site.n_layers)
            if (found := layer_changes(changes, kind, layer, config.n_heads)) is not None
        }
        values = [change.value for change in changes]
        self._bare = {value.side for value in values if isinstance(value, NoPositions)}
        self._dropped = {value.sublayer for value in values if isinstance(value, DropSublayer)}
        self._unnormed = {value.place for value in values if isinstance(value, DropNorm)}
        self._patches = [(each.value, each.material) for each in changes if isinstance(each.value, Patch)]
        self._nowhere = PositionalEncoding(config)

    def encoding(self, side: Side, own: PositionalEncoding) -> PositionalEncoding:
        """The stack's encoding, or none at all."""
        return self._nowhere if side in self._bare else own

    def embedding(self, entered: Entered) -> Tensor:
        """The input of a stack, patched."""
        return self._patched(Embeddings(entered.side), entered.total, entered.first)

    def attention(self, asked: AttentionInputs) -> Attended:
        """The output of fused attention, or if the layer is changed, what the changes make of it."""
        changes = self._layers.get((asked.kind, asked.layer))
        if changes is None:
            return super().attention(asked)
        own = self._attended(asked, changes)
        if not changes.changes_output:
            return own
        return Attended(changes.put(own.output, asked.first), own.output, own.replaced)

    def _attended(self, asked: AttentionInputs, changes: LayerChanges) -> Attended:
        hooks = self.hooks_for(asked.kind, asked.layer)
        if hooks:
            return hooked_attention(asked, hooks, changes)
        if not changes.explicit:
            return Attended(asked.fused())
        found = explicit_attention(asked, changes)
        return Attended(found.weigh(found.scores) @ asked.value)

    def norm(self, place: Sublayer | Side, own: Norm) -> Norm:
        """A LayerNorm, or what passes its input on."""
        return nn.Identity() if place in self._unnormed else own

    def update(self, sublayer: Sublayer, own: Tensor) -> Tensor:
        """The update of a sub-layer: its own, or zero."""
        return torch.zeros_like(own) if sublayer in self._dropped else own

    def residual(self, passed: Passed) -> Tensor:
        """The stream after a sub-layer, patched."""
        return self._patched(Stream(passed.sublayer), passed.output, passed.first)

    def memory(self, own: Tensor) -> Tensor:
        """The encoder's output, patched."""
        return self._patched(EncoderOutput(), own, 0)

    def _patched(self, place: PatchPlace, own: Tensor, first: int) -> Tensor:
        for patch, material in self._patches:
            if patch.place == place:
                own = patch.put_out(own, first, material)
        return own
