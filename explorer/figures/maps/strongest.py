"""The strongest partners of one token, sorted: the keys of a query, or the queries that attend to a key."""

from __future__ import annotations

from typing import Literal

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.quantity import quantity
from explorer.figures.base.shape import HeadLike

SHOWN = 10
"""Most partners in a list, here and in the linked view."""


def strongest(
    view: HeadLike, place: int, of: Literal["query", "key"] = "query", height: int = style.SIZE
) -> go.Figure:
    """Draws a sorted list with bars.

    Args:
        view: The head.
        place: The query, or with ``of="key"`` the key, in the window (from 0).
        of: "query": the keys that the query attends to (the bars are part of a row that sums to 1);
            "key": the queries that attend to the key (the bars are part of a column and have no fixed sum).
        height: In px.

    Raises:
        IndexError: The window has no such query or key.
    """
    values, seen = (
        (view.weights[place], view.mask[place])
        if of == "query"
        else (view.weights[:, place], view.mask[:, place])
    )
    partners = np.flatnonzero(seen)
    order = partners[np.argsort(-values[partners], kind="stable")][:SHOWN]
    names = (
        labels.key_names(view.key_tokens)
        if of == "query"
        else labels.row_names(view.query_tokens, view.predicted_tokens)
    )
    short = [
        labels.escape(labels.shorten(names[i].removeprefix("key ").removeprefix("query "), 24)) for i in order
    ]
    figure = style.bare(
        go.Figure(
            go.Bar(
                x=values[order].astype(np.float32),
                y=np.arange(len(order)),
                orientation="h",
                text=[f"{value:.2f}" for value in values[order]],
                textposition="outside",
                cliponaxis=False,
                hovertext=[labels.escape(names[i]) for i in order],
                hovertemplate=f"%{{hovertext}}<br>{quantity(view).share} %{{x:.3f}}<extra></extra>",
                marker={"color": style.HUES[view.kind]},
            )
        )
    )
    still = {"fixedrange": True, "showgrid": False, "zeroline": False, "ticks": ""}
    figure.update_layout(
        xaxis={**still, "range": [0, 1.15], "visible": False},
        yaxis={
            **still,
            "range": [SHOWN - 0.4, -0.6],
            "tickmode": "array",
            "tickvals": list(range(len(order))),
            "ticktext": short,
            "automargin": True,
        },
        height=height,
        margin={"l": 8, "t": 6, "r": 6, "b": 6},
        bargap=0.35,
        dragmode=False,
    )
    return figure
