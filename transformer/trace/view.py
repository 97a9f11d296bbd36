"""One head as arrays, the input of every figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transformer.model.sites import AttentionKind, ScoreName, Site
from transformer.text.brief import Brief
from transformer.trace.report import AuditReport

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.float32]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Window:
    """A rectangle of an attention map; positions count from 0, stops are exclusive."""

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
class HeadLabels:
    """Tokens along a map: those that rows read, those that rows predict (None in the encoder), the keys."""

    queries: tuple[str, ...]
    predicted: tuple[str, ...] | None
    keys: tuple[str, ...]

    def of(self, window: Window) -> HeadLabels:
        """Those of a part of the map."""
        predicted = None if self.predicted is None else self.predicted[window.queries]
        return HeadLabels(self.queries[window.queries], predicted, self.keys[window.keys])


def site_labels(
    site: Site,  # the attention
    source: tuple[str, ...],  # what the encoder read
    decoder_input: tuple[str, ...],  # what the decoder read
    target: tuple[str, ...],  # what it predicted, row by row
) -> HeadLabels:
    """The tokens along the maps of one attention."""
    read = {"encoder": source, "decoder": decoder_input}
    return HeadLabels(read[site.query_side], target if site.predicts else None, read[site.key_side])


@dataclass(frozen=True, repr=False)
class HeadMap(Brief):
    """One head, or a window of it, as a map: what figures and files need of it."""

    kind: AttentionKind  # which attention
    layer: int  # layer, from 0
    head: int  # head, from 0
    model: str  # name of the model
    norm: str  # where LayerNorm stands, "pre" or "post"; "none" without any
    # tokens of the rows; in decoder and cross-attention, the token that each row reads
    query_tokens: tuple[str, ...]
    # in decoder and cross-attention, the token that each row predicts; else None
    predicted_tokens: tuple[str, ...] | None
    key_tokens: tuple[str, ...]  # tokens of the columns
    window: Window  # which part of the whole map this is
    scores: Array  # (queries, keys) float32, scaled, with bias, before the mask
    mask: BoolArray  # (queries, keys) bool, True = may attend
    weights: Array  # (queries, keys) float32
    audit: AuditReport  # checks of the trace and of this view's arrays
    score: ScoreName = field(default="scaled_dot", kw_only=True)  # how the scores come from queries and keys
    # (queries,) where each query looks in local attention, counted from 0; otherwise None
    centres: Array | None = field(default=None, kw_only=True)
    reach: int = field(default=0, kw_only=True)  # how far from its centre such a query sees; otherwise 0
    # what the numbers in `weights` are: weights, or shares of another measure (`lenses.measures.shares`)
    measure: str = field(default="weight", kw_only=True)
    # (queries, keys) float32 that measure itself; None for weights
    measured: Array | None = field(default=None, kw_only=True)


@dataclass(frozen=True, repr=False)
class HeadView(HeadMap):
    """A map together with the vectors that it was computed from.

    Attributes:
        query: (queries, d_head) float32.
        key: (keys, d_head) float32.
        value: (keys, d_head) float32.
        output: (queries, d_head) float32, weights @ values as the model used it.
    """

    query: Array
    key: Array
    value: Array
    output: Array


def read_only(tensor: Tensor) -> Array:
    """The tensor's numbers without a copy, and read-only because a trace is shared."""
    array: Array = tensor.numpy()
    array.flags.writeable = False
    return array
