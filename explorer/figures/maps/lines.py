"""Attention as lines from queries on the left to keys on the right; thickness shows weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.quantity import quantity
from explorer.figures.base.shape import HeadLike
from explorer.figures.maps.heatmap import row_tokens

MASS = 0.7
WIDEST = 7.0
WIDTHS = 8
SEVERAL = (("#E69F00", "solid"), ("#56B4E9", "dash"), ("#CC79A7", "dot"), ("#999999", "dashdot"))
"""Colours (Okabe and Ito) and line styles of heads drawn together; none is the hue of an attention kind."""


@dataclass(frozen=True)
class WeightLine:
    """One line: a query, a key (positions in the window, from 0) and the weight between them."""

    query: int
    key: int
    weight: float


def links(
    view: HeadLike,  # the head
    # for each row, keep the fewest links that together carry this share (0 to 1); None keeps all
    mass: float | None = MASS,
    threshold: float = 0.0,  # keep only links of at least this weight
) -> list[WeightLine]:
    """Chooses the links to draw.

    Raises:
        ValueError: ``mass`` or ``threshold`` is not from 0 to 1.
    """
    for name, value in (("mass", mass), ("threshold", threshold)):
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"The {name} is {value}; it must be from 0 to 1.")
    chosen = []
    for query, row in enumerate(view.weights):
        order = np.argsort(-row, kind="stable")
        before = np.cumsum(row[order]) - row[order]
        kept = order if mass is None else order[before < mass * row.sum()]
        chosen += [
            WeightLine(query, int(key), float(row[key]))
            for key in kept
            if row[key] > 0 and row[key] >= threshold
        ]
    return chosen


def lines(
    views: Sequence[HeadLike],
    mass: float | None = MASS,
    threshold: float = 0.0,
    query: int | None = None,
    height: int = style.LARGE,
) -> go.Figure:
    """Draws one head in its kind's hue, or up to four of one kind in colours and line styles of their own.

    Args:
        views: Heads of one kind over one window.
        mass: As in ``links``.
        threshold: As in ``links``.
        query: A row to isolate (from 0); the lines of all other rows are faint.
        height: In px.

    Raises:
        ValueError: There is no head, more than four, or they belong to different kinds or windows.
    """
    _check(views)
    traces = []
    for view, (hue, dash) in zip(views, looks(views), strict=False):
        found = links(view, mass, threshold)
        traces += _traces([link for link in found if query in (None, link.query)], view, hue, dash, 1.0)
        if query is not None:
            traces += _traces([link for link in found if link.query != query], view, hue, dash, 0.12)
    figure = style.bare(go.Figure(traces))
    figure.add_scatter(x=[0], y=[None], yaxis="y2", hoverinfo="skip", showlegend=False)
    figure.update_layout(**_frame(views[0], height), showlegend=len(views) > 1)
    return figure


def _check(views: Sequence[HeadLike]) -> None:
    if not 1 <= len(views) <= len(SEVERAL):
        raise ValueError(f"Lines show 1 to {len(SEVERAL)} heads, not {len(views)}.")
    first = views[0]
    if any((view.kind, view.window) != (first.kind, first.window) for view in views):
        raise ValueError("Heads drawn together must be of one kind and one window.")


def looks(views: Sequence[HeadLike]) -> Sequence[tuple[str, str]]:
    """The colour and line style of each head."""
    return SEVERAL if len(views) > 1 else ((style.HUES[views[0].kind], "solid"),)


def _traces(
    found: Sequence[WeightLine], view: HeadLike, hue: str, dash: str, opacity: float
) -> list[go.Scatter]:
    """One trace per thickness, and one of invisible points at the middles of the lines for the hover text."""
    if not found:
        return []
    level = [max(1, round(link.weight * WIDTHS)) for link in found]
    name = labels.head_name(view.layer, view.head)
    traces = []
    for width in sorted(set(level)):
        group = [link for link, its in zip(found, level, strict=True) if its == width]
        traces.append(
            go.Scatter(
                x=np.tile(np.array([0, 1, np.nan], dtype=np.float32), len(group)),
                y=np.array([[link.query, link.key, np.nan] for link in group], dtype=np.float32).ravel(),
                mode="lines",
                line={"color": hue, "width": WIDEST * width / WIDTHS, "dash": dash},
                opacity=opacity,
                hoverinfo="skip",
                name=name,
                legendgroup=name,
                showlegend=width == max(level) and opacity == 1.0,
            )
        )
    return [*traces, _hover_points(found, view, name)]


def _hover_points(found: Sequence[WeightLine], view: HeadLike, name: str) -> go.Scatter:
    rows = labels.row_names(view.query_tokens, view.predicted_tokens)
    keys = labels.key_names(view.key_tokens)
    return go.Scatter(
        x=np.full(len(found), 0.5, dtype=np.float32),
        y=np.array([(link.query + link.key) / 2 for link in found], dtype=np.float32),
        mode="markers",
        marker={"opacity": 0, "size": 10},
        text=[labels.escape(f"{rows[link.query]}, {keys[link.key]}") for link in found],
        customdata=np.array([link.weight for link in found], dtype=np.float32),
        hovertemplate=f"{name} · %{{text}}<br>{quantity(view).share} %{{customdata:.3f}}<extra></extra>",
        showlegend=False,
    )


def _frame(view: HeadLike, height: int) -> dict[str, object]:
    longest = max(len(view.query_tokens), len(view.key_tokens))
    axis = style.token_axis(labels.ticks(row_tokens(view)), height)
    other = style.token_axis(labels.ticks(view.key_tokens), height)
    span = {"range": [longest - 0.5, -0.5]}
    return {
        "xaxis": {"range": [0, 1], "visible": False, "fixedrange": True},
        "yaxis": {**axis, **span},
        "yaxis2": {**other, **span, "overlaying": "y", "side": "right"},
        "height": height,
        "margin": {"l": 96, "r": 96, "t": 24, "b": 6},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        "dragmode": False,
    }
