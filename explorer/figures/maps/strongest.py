"""The strongest partners of one token, sorted: the keys of a query, or the queries that attend to a key."""

from __future__ import annotations

from typing import Literal

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.quantity import quantity
from explorer.figures.base.shape import cell_names
from transformer.view import HeadMap

SHOWN = 10
"""Most partners in a list, here and in the linked view."""


def strongest(
    view: HeadMap, place: int, of: Literal["query", "key"] = "query", height: int = style.SIZE
) -> go.Figure:
    """The keys of a query, or the queries of a key, sorted, as bars; IndexError without such a place."""
    row = of == "query"
    at = (place, slice(None)) if row else (slice(None), place)
    values, seen = view.weights[at], view.mask[at]
    partners = np.flatnonzero(seen)
    order = partners[np.argsort(-values[partners], kind="stable")][:SHOWN]
    queries, keys = cell_names(view)
    names = [(keys if row else queries)[i] for i in order]
    listed = plot.bars(
        values[order].astype(np.float32),
        style.HUES[view.kind],
        text=[f"{value:.2f}" for value in values[order]],
        hovertext=list(map(labels.escape, names)),
        hovertemplate=f"%{{hovertext}}<br>{quantity(view).share} %{{x:.3f}}<extra></extra>",
    )
    bare = [name.removeprefix("key ").removeprefix("query ") for name in names]
    short = [labels.escape(labels.shorten(name, 24)) for name in bare]
    x, y = plot.list_axes(short, (0, 1.15), SHOWN)
    return plot.figure([listed], x, y | {"automargin": True}, height, (8, 6, 6, 6), bargap=0.35)
