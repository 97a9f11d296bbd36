"""What attention consumed and produced, and reading heads out of it: plain records.

A trace keeps queries, keys, values, outputs and the mask as a rule: memory grows with n·d.
Scores and weights are derived from them on demand, per head and per window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .biases import ALL_HEADS as ALL_HEADS
from .biases import BiasRule, Heads
from .scores import attention_scores, attention_weights

Array = NDArray[np.float32]
BoolArray = NDArray[np.bool_]
Side = Literal["encoder", "decoder"]
AS_RECORDED = " (as recorded)"
"""Ends the name of a check that only a file vouches for, because repeating it needs the model."""


class AttentionKind(StrEnum):
    """The three attentions of an encoder-decoder (section 3.2.3)."""

    ENCODER = "encoder"
    DECODER = "decoder"
    CROSS = "cross"


@dataclass(frozen=True)
class Capture:
    """What to record.

    Attributes:
        attention: Queries, keys, values, outputs, masks and embeddings.
        residual: Also what every sub-layer read, returned, and left in the residual stream.
    """

    attention: bool = True
    residual: bool = False


@dataclass(frozen=True)
class Check:
    """One check of an audit: the worst value found, and the limit it must stay within."""

    name: str
    value: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the value is a number within the limit."""
        return self.value <= self.limit


@dataclass(frozen=True)
class AuditReport:
    """The checks that were run on a trace."""

    checks: tuple[Check, ...]

    @property
    def imported(self) -> bool:
        """Whether some of it was only read from a file."""
        return any(check.name.endswith(AS_RECORDED) for check in self.checks)

    @property
    def passed(self) -> bool:
        """Whether there was a check and all passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def row_sum_error(self) -> float:
        """Largest distance of a row sum from 1 (from 0 where a row sees no key)."""
        return self._worst("row sums")

    @property
    def output_error(self) -> float:
        """Largest difference between recomputed and used output, as a share of max |value|."""
        return self._worst("outputs")

    def _worst(self, name: str) -> float:
        return max((check.value for check in self.checks if check.name == name), default=float("nan"))


@dataclass(frozen=True)
class Window:
    """A rectangle of an attention map: positions from 0, stops excluded."""

    query_start: int
    query_stop: int
    key_start: int
    key_stop: int

    @property
    def queries(self) -> slice:
        """The rows."""
        return slice(self.query_start, self.query_stop)

    @property
    def keys(self) -> slice:
        """The columns."""
        return slice(self.key_start, self.key_stop)


@dataclass(frozen=True)
class HeadView:
    """One head, or a window of it, as everything that draws receives it.

    Attributes:
        kind: Which attention.
        layer: Layer, from 0.
        head: Head, from 0.
        model: Name of the model.
        norm: "pre" or "post".
        query_tokens: The rows; in decoder and cross-attention the token that the row reads.
        predicted_tokens: In decoder and cross-attention the token that the row predicts; None in the encoder.
        key_tokens: The columns.
        window: Which part of the whole map this is.
        scores: (queries, keys) float32, scaled, with bias, before the mask.
        mask: (queries, keys) bool, True = may attend.
        weights: (queries, keys) float32.
        query: (queries, d_head) float32.
        key: (keys, d_head) float32.
        value: (keys, d_head) float32.
        output: (queries, d_head) float32, weights @ values as the model used it.
        audit: Proof for the trace and for the arrays of this view.
    """

    kind: AttentionKind
    layer: int
    head: int
    model: str
    norm: str
    query_tokens: tuple[str, ...]
    predicted_tokens: tuple[str, ...] | None
    key_tokens: tuple[str, ...]
    window: Window
    scores: Array
    mask: BoolArray
    weights: Array
    query: Array
    key: Array
    value: Array
    output: Array
    audit: AuditReport


@dataclass(frozen=True)
class LayerTrace:
    """One attention sub-layer for one sentence; every tensor is float32 on the CPU.

    Attributes:
        query: (heads, queries, d_head), after rotation if any.
        key: (heads, keys, d_head), after rotation if any.
        value: (heads, keys, d_head).
        output: (heads, queries, d_head), what attention really returned.
        key_padding: (keys,) bool, True for tokens; None where nothing is padded.
        causal: Whether query i sees keys 0 to i only.
        bias: Rule for numbers added to the scores, or None.
        replaced_rows: (heads, queries) bool, rows that hooks changed; None without hooks.
        replaced_weights: (heads, queries, keys) weights used where hooks acted; None without hooks.
        value_norms: (heads, keys) ‖v_j W_O^h‖, where a file gives them; None where only the trace is known.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    key_padding: Tensor | None
    causal: bool
    bias: BiasRule | None = None
    replaced_rows: Tensor | None = None
    replaced_weights: Tensor | None = None
    value_norms: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        return self.query.shape[0], self.query.shape[1], self.key.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes held by the tensors."""
        held = (self.query, self.key, self.value, self.output, self.key_padding, self.replaced_weights)
        return sum(tensor.nbytes for tensor in held if tensor is not None)

    def window(self) -> Window:
        """The whole map."""
        return Window(0, self.shape[1], 0, self.shape[2])

    def mask(self, window: Window | None = None) -> Tensor:
        """(queries, keys) bool, True = may attend."""
        window = window or self.window()
        keys = torch.arange(window.key_start, window.key_stop)
        mask = torch.ones(window.query_stop - window.query_start, len(keys), dtype=torch.bool)
        if self.causal:
            mask &= keys <= torch.arange(window.query_start, window.query_stop)[:, None]
        return mask if self.key_padding is None else mask & self.key_padding[window.keys]

    def scores(self, heads: Heads, window: Window | None = None) -> Tensor:
        """(queries, keys) scores of one head, or (heads, queries, keys), with bias, before the mask."""
        window = window or self.window()
        query, key = self.query[heads, window.queries], self.key[heads, window.keys]
        return attention_scores(query, key, self.bias_scores(heads, window))

    def bias_scores(self, heads: Heads, window: Window | None = None) -> Tensor | None:
        """The part of ``scores`` that the rule adds, shaped alike; None without a rule."""
        if self.bias is None:
            return None
        window = window or self.window()
        rows = torch.arange(window.query_start, window.query_stop)
        columns = torch.arange(window.key_start, window.key_stop)
        return self.bias.scores(self.query[heads, window.queries], rows, columns, heads)

    def weights(self, heads: Heads, window: Window | None = None) -> Tensor:
        """As ``scores``, the weights; the softmax always runs over all keys."""
        window = window or self.window()
        rows = Window(window.query_start, window.query_stop, 0, self.shape[2])
        weights = attention_weights(self.scores(heads, rows), self.mask(rows))
        if self.replaced_rows is not None and self.replaced_weights is not None:
            changed = self.replaced_rows[heads, window.queries, None]
            weights = torch.where(changed, self.replaced_weights[heads, window.queries], weights)
        return weights[..., window.keys]


@dataclass(frozen=True)
class EmbeddingTrace:
    """The input of a stack for one sentence (sections 3.4 and 3.5).

    Attributes:
        tokens: (length, d_model) token embeddings × √d_model.
        positions: (length, d_model) encoding that was added; None where none is.
        input: (length, d_model) what the first layer received.
    """

    tokens: Tensor
    positions: Tensor | None
    input: Tensor


@dataclass(frozen=True)
class Sublayer:
    """Names a sub-layer: side "encoder" or "decoder", layer from 0, and which of its sub-layers."""

    side: Side
    layer: int
    name: Literal["self_attention", "cross_attention", "feed_forward"]


@dataclass(frozen=True)
class ResidualTrace:
    """A sub-layer and the residual stream around it, each (length, d_model).

    Attributes:
        stream: The stream that arrives.
        read: What the sub-layer reads: LayerNorm(stream) with pre-norm, the stream itself with post-norm.
        update: What the sub-layer returns.
        output: The stream that leaves.
    """

    stream: Tensor
    read: Tensor
    update: Tensor
    output: Tensor


Place = tuple[AttentionKind, int]
"""An attention sub-layer: its kind, and its layer from 0."""
Auditor = Callable[["AttentionTrace", tuple[Place, ...]], AuditReport]


@dataclass(frozen=True, eq=False)
class AttentionTrace:
    """Everything recorded of one sentence.

    Attributes:
        layers: One ``LayerTrace`` per kind and layer.
        embeddings: One ``EmbeddingTrace`` per side that ran.
        residuals: One ``ResidualTrace`` per sub-layer; empty unless asked for.
        dtype: Type the model computed in; the coarser one where encoder and decoder differ.
        auditor: Runs the checks on the given sub-layers.
    """

    layers: dict[AttentionKind, tuple[LayerTrace, ...]]
    embeddings: dict[Side, EmbeddingTrace]
    residuals: dict[Sublayer, ResidualTrace]
    dtype: torch.dtype
    auditor: Auditor = field(repr=False)
    _reports: dict[tuple[Place, ...], AuditReport] = field(default_factory=dict, init=False, repr=False)

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
        """What the positional encoding adds to the scores, shaped alike; None where it adds nothing."""
        bias = self.layer(kind, layer, head).bias_scores(ALL_HEADS if head is None else head, window)
        return None if bias is None else bias.numpy()

    def weights(
        self, kind: AttentionKind | str, layer: int, head: int | None = None, window: Window | None = None
    ) -> Array:
        """Weights: (queries, keys) of one head, or (heads, queries, keys) of all; rows sum to 1."""
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
        """(queries, keys) ‖w_ij · v_j W_O^h‖: how much of the update each key brings (Kobayashi et al. 2020).

        None where the trace does not know W_O: it comes with a file that was saved beside its model.
        """
        trace = self.layer(kind, layer, head)
        if trace.value_norms is None:
            return None
        keys = (window or trace.window()).keys
        contributions: Array = (trace.weights(head, window) * trace.value_norms[head, keys]).numpy()
        return contributions

    @property
    def places(self) -> tuple[Place, ...]:
        """Every attention sub-layer of the trace."""
        return tuple((kind, layer) for kind, layers in self.layers.items() for layer in range(len(layers)))

    def audit(self, *places: Place) -> AuditReport:
        """The checks of ``transformer.audit`` on the given sub-layers, by default all; run once and kept."""
        places = places or self.places
        if places not in self._reports:
            self._reports[places] = self.auditor(self, places)
        return self._reports[places]

    @property
    def nbytes(self) -> int:
        """Bytes held by the attention records."""
        return sum(layer.nbytes for layers in self.layers.values() for layer in layers)
