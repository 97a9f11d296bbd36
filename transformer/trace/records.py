"""Plain records of attention's inputs and outputs, and ways to read heads out of them.

A trace keeps queries, keys, values, outputs, and the mask as a rule, so its memory grows with n·d. Scores and
weights are computed from these on demand, for each head and window.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer.interventions import Intervention
from transformer.interventions.acting import Change, LayerChanges
from transformer.model.encodings.biases import ALL_HEADS, BiasRule, Heads
from transformer.model.masks import Focus
from transformer.model.norms import StreamNorm
from transformer.model.scores import SCALED_DOT, ScoreRule, attention_weights
from transformer.model.sites import AttentionKind, Place, Side, Sublayer
from transformer.text.brief import Brief
from transformer.trace.report import AuditReport
from transformer.trace.view import Array, BoolArray, HeadLabels, Window


@dataclass(frozen=True, repr=False)
class LayerTrace(Brief):
    """One attention sub-layer for one sentence; every tensor is float32 on the CPU."""

    query: Tensor  # (heads, queries, d_head), after rotation if any
    key: Tensor  # (heads, keys, d_head), after rotation if any
    value: Tensor  # (heads, keys, d_head)
    output: Tensor  # (heads, queries, d_head), what attention really returned, and what W_O read
    key_padding: Tensor | None  # (keys,) bool, True for tokens; None if nothing is padded
    causal: bool  # whether query i sees only keys 0 to i
    bias: BiasRule | None = None  # rule for numbers added to the scores, or None
    replaced_rows: Tensor | None = None  # (heads, queries) bool, rows that hooks changed; None without hooks
    # (heads, queries, keys) weights used in the replaced rows; None without hooks
    replaced_weights: Tensor | None = None
    value_norms: Tensor | None = None  # (heads, keys) ‖v_j W_O^h‖, if a file gives them; otherwise None
    # What interventions change here, as rules; mask, scores and weights are then the changed ones. None
    # without any.
    changes: LayerChanges | None = None
    # (heads, queries, d_head) the output before interventions changed it; None if none did
    own_output: Tensor | None = None
    score: ScoreRule = SCALED_DOT  # how scores come from queries and keys
    focus: Focus | None = None  # where each query looks, centres (queries,); None if it may look everywhere

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        return self.query.shape[0], self.query.shape[1], self.key.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes held by the tensors."""
        attended = (self.query, self.key, self.value, self.output, self.own_output)
        held = (*attended, self.key_padding, self.replaced_weights)
        return sum(tensor.nbytes for tensor in held if tensor is not None)

    def window(self) -> Window:
        """The whole map."""
        return Window(0, self.shape[1], 0, self.shape[2])

    def own_mask(self, window: Window | None = None) -> Tensor:
        """(queries, keys) bool, True = may attend: the model's own mask, before interventions."""
        window = window or self.window()
        keys = torch.arange(window.key_start, window.key_stop)
        mask = torch.ones(window.query_stop - window.query_start, len(keys), dtype=torch.bool)
        if self.causal:
            mask &= keys <= torch.arange(window.query_start, window.query_stop)[:, None]
        if self.focus is not None:
            mask &= self.focus.of(window.queries).visible(self.shape[2])[:, window.keys]
        return mask if self.key_padding is None else mask & self.key_padding[window.keys]

    def mask(self, window: Window | None = None) -> Tensor:
        """(queries, keys) bool, True = may attend; with the cells that interventions allow or forbid."""
        window = window or self.window()
        if self.changes is None:
            return self.own_mask(window)
        rows = Window(window.query_start, window.query_stop, 0, self.shape[2])
        own = self.own_mask(rows)
        mask = self.changes.masked(own, own, window.query_start)
        return (own if mask is None else mask)[:, window.keys]

    def scores(self, heads: Heads, window: Window | None = None) -> Tensor:
        """(queries, keys) scores of one head, or (heads, queries, keys), with bias, before the mask."""
        window = window or self.window()
        query, key = self.query[heads, window.queries], self.key[heads, window.keys]
        bias = self.bias_scores(heads, window)
        scores = self.score.scores(query, key, heads)
        scores = scores if bias is None else scores + bias
        if self.changes is None:
            return scores
        undivided = None if self.bias is None or self.bias.divided else bias
        if not isinstance(heads, int):
            return self.changes.on_scores(scores, undivided, query.shape[-1])
        part = None if undivided is None else undivided[None]
        return self.changes.alone(heads).on_scores(scores[None], part, query.shape[-1])[0]

    def bias_scores(self, heads: Heads, window: Window | None = None) -> Tensor | None:
        """The part of ``scores`` that the bias rule adds, in the same shape; None without a rule."""
        if self.bias is None:
            return None
        window = window or self.window()
        rows = torch.arange(window.query_start, window.query_stop)
        columns = torch.arange(window.key_start, window.key_stop)
        return self.bias.scores(self.query[heads, window.queries], rows, columns, heads)

    def weights(self, heads: Heads, window: Window | None = None) -> Tensor:
        """The weights, shaped as ``scores``; the softmax always runs over all keys."""
        window = window or self.window()
        rows = Window(window.query_start, window.query_stop, 0, self.shape[2])
        mask = self.mask(rows)
        focus = None if self.focus is None else self.focus.of(window.queries)
        own = attention_weights(self.scores(heads, rows), mask, focus)
        weights = self._weighed(heads, own, mask, window)
        if self.replaced_rows is not None and self.replaced_weights is not None:
            changed = self.replaced_rows[heads, window.queries, None]
            weights = torch.where(changed, self.replaced_weights[heads, window.queries], weights)
        return weights[..., window.keys]

    def _weighed(self, heads: Heads, own: Tensor, mask: Tensor, window: Window) -> Tensor:
        """The weights of one head or of all, as interventions change them."""
        if self.changes is None:
            return own
        if not isinstance(heads, int):
            return self.changes.on_weights(own, mask, window.query_start)
        return self.changes.alone(heads).on_weights(own[None], mask, window.query_start)[0]


@dataclass(frozen=True, repr=False)
class EmbeddingTrace(Brief):
    """The input of a stack for one sentence (sections 3.4 and 3.5)."""

    tokens: Tensor  # (length, d_model) token embeddings × √d_model
    positions: Tensor | None  # (length, d_model) encoding that was added; None if none was added
    input: Tensor  # (length, d_model) what the first layer received: the sum, or its norm
    # (length, d_model) the sum before another run was patched in; None without a patch here
    own_input: Tensor | None = None
    norm: StreamNorm | None = None  # what normalised the sum; None if nothing did

    @property
    def sum(self) -> Tensor:
        """(length, d_model) token embeddings + encoding."""
        return self.tokens if self.positions is None else self.tokens + self.positions


@dataclass(frozen=True, repr=False)
class ResidualTrace(Brief):
    """A sub-layer and the residual stream around it; each tensor is (length, d_model)."""

    stream: Tensor  # the stream before the sub-layer
    # what the sub-layer reads: LayerNorm(stream) with pre-norm, the stream itself with post-norm
    read: Tensor
    update: Tensor  # what the sub-layer adds
    output: Tensor  # the stream after the sub-layer
    # what the sub-layer returned, if an intervention dropped it; otherwise None
    own_update: Tensor | None = None
    # the stream before another run was patched in; None without a patch here
    own_output: Tensor | None = None


@dataclass(frozen=True, repr=False)
class MemoryTrace(Brief):
    """The encoder's output for one sentence."""

    used: Tensor  # (source, d_model) what cross-attention reads
    # (source, d_model) what the encoder returned, if another run was patched in; otherwise None
    own: Tensor | None = None


@dataclass(frozen=True, repr=False)
class TokenTrace(Brief):
    """Tokens that a stack read or that were written, which the labels of every picture must name."""

    ids: tuple[int, ...]
    pieces: tuple[str, ...]  # their names
    text: str = ""  # the text that they stand for
    first: int = 0  # position of the first


Auditor = Callable[["AttentionTrace", tuple[Place, ...]], AuditReport]
SIDES: dict[AttentionKind, tuple[Side, Side]] = {
    AttentionKind.ENCODER: ("encoder", "encoder"),
    AttentionKind.DECODER: ("decoder", "decoder"),
    AttentionKind.CROSS: ("decoder", "encoder"),
}
"""The sides of each kind's queries and keys."""


@dataclass(frozen=True, eq=False, repr=False)
class AttentionTrace(Brief):
    """Everything that was recorded of one sentence.

    Attributes:
        layers: One ``LayerTrace`` per kind and layer.
        embeddings: One ``EmbeddingTrace`` per side that ran.
        residuals: One ``ResidualTrace`` per sub-layer; empty unless requested.
        dtype: Type that the model computed in; the coarser type if encoder and decoder differ.
        auditor: Runs the checks on the given sub-layers.
        changes: The interventions of the run, with what they put in.
        memory: The encoder's output; None unless the residual stream was requested.
        tokens: What was read by side, and what was "written"; empty if the trace does not know it.
    """

    layers: dict[AttentionKind, tuple[LayerTrace, ...]]
    embeddings: dict[Side, EmbeddingTrace]
    residuals: dict[Sublayer, ResidualTrace]
    dtype: torch.dtype
    auditor: Auditor = field(repr=False)
    changes: tuple[Change, ...] = ()
    memory: MemoryTrace | None = None
    tokens: Mapping[str, TokenTrace] = field(default_factory=dict)
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def layer(self, kind: AttentionKind | str, layer: int, head: int | None = None) -> LayerTrace:
        """One attention sub-layer.

        Raises:
            IndexError: The kind has no such layer, or the layer no such head (both count from 0).
        """
        layers = self.layers.get(AttentionKind(kind), ())
        if not 0 <= layer < len(layers):
            raise IndexError(
                f"There is no {kind} layer {layer}; this trace has {len(layers)}, counted from 0."
            )
        found = layers[layer]
        if head is not None and not 0 <= head < found.shape[0]:
            raise IndexError(f"There is no head {head}; a layer has {found.shape[0]}, counted from 0.")
        return found

    def scores(
        self, kind: AttentionKind | str, layer: int, head: int | None = None, window: Window | None = None
    ) -> Array:
        """Scaled scores before the mask: (queries, keys) of one head, or (heads, queries, keys) of all."""
        trace = self.layer(kind, layer, head)
        scores: Array = trace.scores(ALL_HEADS if head is None else head, window).numpy()
        return scores

    def bias(
        self, kind: AttentionKind | str, layer: int, head: int | None = None, window: Window | None = None
    ) -> Array | None:
        """The bias of the positional encoding, in the shape of the scores; None if it adds nothing."""
        bias = self.layer(kind, layer, head).bias_scores(ALL_HEADS if head is None else head, window)
        return None if bias is None else bias.numpy()

    def weights(
        self, kind: AttentionKind | str, layer: int, head: int | None = None, window: Window | None = None
    ) -> Array:
        """Weights: (queries, keys) of one head, or (heads, queries, keys) of all.

        Rows sum to 1; in local attention, whose weights a Gaussian multiplies, to less.
        """
        trace = self.layer(kind, layer, head)
        weights: Array = trace.weights(ALL_HEADS if head is None else head, window).numpy()
        return weights

    def mask(
        self, kind: AttentionKind | str, layer: int, head: int | None = None, window: Window | None = None
    ) -> BoolArray:
        """True = may attend: (queries, keys) of one head, or the same for all, (heads, queries, keys)."""
        trace = self.layer(kind, layer, head)
        mask = trace.mask(window).numpy()
        return mask if head is not None else np.broadcast_to(mask, (trace.shape[0], *mask.shape))

    def contributions(
        self, kind: AttentionKind | str, layer: int, head: int, window: Window | None = None
    ) -> Array | None:
        """(queries, keys) ‖w_ij · v_j W_O^h‖: each key's share in the update (Kobayashi et al. 2020).

        None if the trace lacks the norms, which come only with a file that was saved together with its model,
        or if an intervention changed the head's output after it was computed.
        """
        trace = self.layer(kind, layer, head)
        changed = () if trace.changes is None else trace.changes.heads.get(head, ())
        if trace.value_norms is None or any(change.acts_on == "output" for change, _ in changed):
            return None
        keys = (window or trace.window()).keys
        contributions: Array = (trace.weights(head, window) * trace.value_norms[head, keys]).numpy()
        return contributions

    def labels(self, kind: AttentionKind | str) -> HeadLabels | None:
        """The tokens along the maps of a kind, as they were read and written; None if they are not known."""
        if not self.tokens:
            return None
        rows, keys = SIDES[AttentionKind(kind)]
        written = self.tokens["written"].pieces if rows == "decoder" else None
        return HeadLabels(self.tokens[rows].pieces, written, self.tokens[keys].pieces)

    @property
    def hash(self) -> int:
        """A number that depends on what entered the model; it chooses the cells that are computed twice."""
        entered = [embedding.input.numpy().tobytes() for embedding in self.embeddings.values()]
        found: int = self.once("hash", lambda: zlib.crc32(b"".join(entered)))
        return found

    @property
    def interventions(self) -> tuple[Intervention, ...]:
        """The changes in this run."""
        return tuple(change.value for change in self.changes)

    @property
    def places(self) -> tuple[Place, ...]:
        """Every attention sub-layer of the trace."""
        return tuple((kind, layer) for kind, layers in self.layers.items() for layer in range(len(layers)))

    def audit(self, *places: Place) -> AuditReport:
        """Runs the checks of ``transformer.trace.audit`` on the given sub-layers, by default all; cached."""
        found: AuditReport = self.once(places, lambda: self.auditor(self, places or self.places))
        return found

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """A value that is made when this trace is asked for it first."""
        return self._made[key] if key in self._made else self._made.setdefault(key, make())

    @property
    def nbytes(self) -> int:
        """Bytes held by the attention records."""
        return sum(layer.nbytes for layers in self.layers.values() for layer in layers)
