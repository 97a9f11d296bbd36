"""Reads one head out of a trace, audits the arrays, and knows each head's part of W^O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transformer.model.sites import AttentionKind, PlacedHead
from transformer.trace.audit import audit_view
from transformer.trace.records import AttentionTrace
from transformer.trace.report import AuditReport
from transformer.trace.view import HeadLabels, HeadView, Window, read_only

if TYPE_CHECKING:
    from transformer.model.network import Network


def head_view(
    trace: AttentionTrace,  # the trace
    place: PlacedHead,
    labels: HeadLabels,  # tokens of the whole map
    model: tuple[str, str],  # name, and "pre" or "post"
    window: Window | None = None,  # the part of the map; None for all of it
) -> HeadView:
    """Reads one head out of a trace and audits the arrays that it returns.

    Raises:
        IndexError: There is no such layer or head, or the window leaves the map.
    """
    kind, layer, head = place
    record = trace.layer(kind, layer, head)
    window = _checked(window or record.window(), record.window())
    rows, keys, drawn = window.queries, window.keys, labels.of(window)
    view = HeadView(
        kind=kind,
        layer=layer,
        head=head,
        model=model[0],
        norm=model[1],
        query_tokens=drawn.queries,
        predicted_tokens=drawn.predicted,
        key_tokens=drawn.keys,
        window=window,
        scores=trace.scores(kind, layer, head, window),
        mask=trace.mask(kind, layer, head, window),
        weights=trace.weights(kind, layer, head, window),
        query=read_only(record.query[head, rows]),
        key=read_only(record.key[head, keys]),
        value=read_only(record.value[head, keys]),
        output=read_only(record.output[head, rows]),
        audit=AuditReport(()),
        score=record.score.name,
        centres=None if record.focus is None else read_only(record.focus.centres[rows]),
        reach=0 if record.focus is None else record.focus.reach,
    )
    found = trace.audit((kind, layer)).joined(audit_view(view, record, trace.labels(kind)))
    return replace(view, audit=found)


def _checked(window: Window, whole: Window) -> Window:
    inside = (
        0 <= window.query_start < window.query_stop <= whole.query_stop
        and 0 <= window.key_start < window.key_stop <= whole.key_stop
    )
    if not inside:
        raise IndexError(
            f"The window {window} leaves the map of {whole.query_stop} × {whole.key_stop} cells."
        )
    return window


Floats = NDArray[np.float32]
Projections = Callable[[AttentionKind, int], Floats]
"""A function that returns each head's part of W^O in a layer: (heads, d_head, d_model)."""


def output_projections(model: Network) -> Projections:
    """W^O of a model by kind and layer, cut into its heads (section 3.2.2)."""

    def part(kind: AttentionKind, layer: int) -> Floats:
        attention = model.attention(kind, layer)
        weight = attention.out_proj.weight.detach().float().cpu()
        found: Floats = weight.T.reshape(attention.n_heads, -1, weight.shape[0]).numpy()
        return found

    return part
