"""One head as arrays, the input of every figure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transformer.model.sites import AttentionKind
from transformer.trace.report import AuditReport

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
class HeadView:
    """One head, or a window of it, as every figure receives it.

    Attributes:
        kind: Which attention.
        layer: Layer, from 0.
        head: Head, from 0.
        model: Name of the model.
        norm: "pre" or "post".
        query_tokens: Tokens of the rows; in decoder and cross-attention, the token that each row reads.
        predicted_tokens: In decoder and cross-attention, the token that each row predicts; else None.
        key_tokens: Tokens of the columns.
        window: Which part of the whole map this is.
        scores: (queries, keys) float32, scaled, with bias, before the mask.
        mask: (queries, keys) bool, True = may attend.
        weights: (queries, keys) float32.
        query: (queries, d_head) float32.
        key: (keys, d_head) float32.
        value: (keys, d_head) float32.
        output: (queries, d_head) float32, weights @ values as the model used it.
        audit: Checks of the trace and of this view's arrays.
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
