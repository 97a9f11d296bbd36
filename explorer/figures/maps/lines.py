"""Attention as lines from queries on the left to keys on the right; thickness shows weight."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.captions import cell_names, quantity
from explorer.figures.base.plot import Spec
from explorer.figures.maps.heatmap import row_tokens
from transformer.view import HeadMap

MASS = 0.7
WIDEST = 7.0
WIDTHS = 8
SEVERAL = style.SERIES


@dataclass(frozen=True)
class WeightLine:
    """One line: a query, a key (positions in the window, from 0) and the weight between them."""

    query: int
    key: int
    weight: float


def links(
    view: HeadMap,  # the head
    # for each row, keep the fewest links that together carry this share (0 to 1); None keeps all
    mass: float | None = MASS,
    threshold: float = 0.0,  # keep only links of at least this weight
) -> list[WeightLine]:
    """Chooses the links to draw; ValueError unless ``mass`` and ``threshold`` are from 0 to 1."""
    for name, value in (("mass", mass), ("threshold", threshold)):
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"The {name} is {value}; it must be from 0 to 1.")
    chosen = []
    for query, row in enumerate(np.nan_to_num(view.weights)):
        keys = np.argsort(-row, kind="stable")
        if mass is not None:
            before = np.cumsum(row[keys]) - row[keys]
            keys = keys[before < mass * row.sum()]
        chosen += [
            WeightLine(query, int(key), float(row[key]))
            for key in keys
            if row[key] > 0 and row[key] >= threshold
        ]
    return chosen


def lines(
    views: Sequence[HeadMap],
    mass: float | None = MASS,
    threshold: float = 0.0,
    query: int | None = None,
    height: int = style.LARGE,
) -> go.Figure:
    """One to four heads of one kind and window, else ValueError; all rows but `query` are faint."""
    if not 1 <= len(views) <= len(SEVERAL):
        raise ValueError(f"Lines show 1 to {len(SEVERAL)} heads, not {len(views)}.")
    if any((view.kind, view.window) != (views[0].kind, views[0].window) for view in views):
        raise ValueError("Heads drawn together must be of one kind and one window.")
    traces = []
    for view, (hue, dash) in zip(views, looks(views), strict=False):
        chosen = links(view, mass, threshold)
        strong = [link for link in chosen if query in (None, link.query)]
        traces += _traces(strong, view, hue, dash, 1.0)
        if query is not None:
            faint = [link for link in chosen if link.query != query]
            traces += _traces(faint, view, hue, dash, 0.12)
    traces.append(plot.nothing(yaxis="y2", x=[0], hoverinfo="skip", showlegend=False))
    view = views[0]
    span = {"range": [max(len(view.query_tokens), len(view.key_tokens)) - 0.5, -0.5]}
    left = plot.token_axis(row_tokens(view), height)
    right = plot.token_axis(view.key_tokens, height)
    return plot.figure(
        traces,
        {"range": [0, 1], "visible": False, "fixedrange": True},
        left | span,
        height,
        (96, 24, 96, 6),
        yaxis2=right | span | {"overlaying": "y", "side": "right"},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        showlegend=len(views) > 1,
    )


def looks(views: Sequence[HeadMap]) -> Sequence[tuple[str, str]]:
    """The colour and line style of each head."""
    if len(views) > 1:
        return SEVERAL
    return ((style.HUES[views[0].kind], "solid"),)


def _traces(
    lines: Sequence[WeightLine], view: HeadMap, hue: str, dash: str, opacity: float
) -> list[Spec]:
    """One trace per thickness, and one of unseen points at the middles for the hover text."""
    if not lines:
        return []
    levels = [max(1, round(link.weight * WIDTHS)) for link in lines]
    name = labels.head_name(view.layer, view.head)
    traces = []
    for level in sorted(set(levels)):
        group = [link for link, its in zip(lines, levels, strict=True) if its == level]
        x = np.tile(np.array([0, 1, np.nan], np.float32), len(group))
        y = np.array([[link.query, link.key, np.nan] for link in group], np.float32).ravel()
        line = {"color": hue, "width": WIDEST * level / WIDTHS, "dash": dash}
        named = level == max(levels) and opacity == 1.0
        look: Spec = {"opacity": opacity, "name": name, "legendgroup": name, "showlegend": named}
        traces.append(plot.points(x, y, "lines", line=line, **look))
    rows, keys = cell_names(view)
    unseen = plot.points(
        np.full(len(lines), 0.5, np.float32),
        np.array([(link.query + link.key) / 2 for link in lines], np.float32),
        marker={"opacity": 0, "size": 10},
        text=[labels.escape(f"{rows[link.query]}, {keys[link.key]}") for link in lines],
        customdata=np.array([link.weight for link in lines], np.float32),
        hovertemplate=f"{name} · %{{text}}<br>{quantity(view).share} %{{customdata:.3f}}"
        "<extra></extra>",
        showlegend=False,
    )
    return [*traces, unseen]
