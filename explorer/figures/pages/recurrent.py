"""The page Recurrent: predicted centres on a map, and the ways that information takes in a
sentence."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style

RECURRENT, ATTENTION = style.NEGATIVE, style.POSITIVE
"""Colours of the two ways through a sentence; neither is the hue of a kind of attention."""
_MOST_PLACES = 60
"""The most tokens of which each has a label of its own."""


def with_centres(figure: go.Figure, centres: np.ndarray, first: int, keys: int) -> go.Figure:
    """Marks on a map where each query of local attention looks."""
    places = np.asarray(centres, np.float32) - first
    inside = (places >= -0.5) & (places <= keys - 0.5)
    marks = plot.points(
        np.where(inside, places, np.nan),
        np.arange(len(places)),
        marker={"symbol": "line-ns", "size": 13, "line": {"width": 2.5, "color": style.POSITIVE}},
        customdata=np.asarray(centres, np.float32) + 1,
        hovertemplate="predicted centre: position %{customdata:.1f}<extra></extra>",
    )
    return figure.add_trace(marks)


def paths(tokens: Sequence[str], ends: tuple[int, int]) -> go.Figure:
    """The way of information from one token of a sentence to another: through every state, or
    directly."""
    count = len(tokens)
    (start, stop) = sorted(ends)
    names = [labels.escape(name) for name in labels.names(tokens, 5.5)]
    steps = stop - start
    places = list(range(count))
    told, data = "%{customdata}<extra></extra>", []
    faint = {"size": 9, "color": "rgba(0,0,0,0)", "line": {"width": 1.5, "color": style.NEUTRAL}}
    for y in (2.0, 0.0):
        data.append(
            plot.points(places, [y] * count, marker=faint, customdata=names, hovertemplate=told)
        )
    for y, colour, way in (
        (2.0, RECURRENT, list(range(start, stop + 1))),
        (0.0, ATTENTION, [start, stop]),
    ):
        sizes = [13 if place in (start, stop) else 9 for place in way]
        data.append(plot.points(way, [y] * len(way), marker={"size": sizes, "color": colour}))
    arc = {"type": "path", "path": f"M {start} 0.12 Q {(start + stop) / 2} 1.9 {stop} 0.12"}
    corner = {"xref": "paper", "yref": "y", "xanchor": "left", "yanchor": "top"}
    far = (
        f"recurrent: {steps} step{'s' * (steps != 1)}, one after the other"
        if steps
        else "recurrent: no step"
    )
    size = 12 if count <= 24 else 9
    every = -(-count // _MOST_PLACES)
    arrow: plot.Spec = {
        "y": 2.0,
        "ay": 2.0,
        "axref": "x",
        "ayref": "y",
        "xref": "x",
        "yref": "y",
        "text": "",
    }
    arrow |= {"showarrow": True, "arrowhead": 2, "arrowsize": 0.9}
    arrows = []
    for i in range(count - 1):  # from one state of the recurrent network to the next
        colour, width = (RECURRENT, 2.2) if start <= i < stop else (style.NEUTRAL, 1.1)
        look = {"arrowcolor": colour, "arrowwidth": width}
        arrows.append({"x": i + 0.88, "ax": i + 0.12, **arrow, **look})
    return plot.figure(
        data,
        plot.named_axis(names, size, every, edge=0.6, tickangle=-60),
        {"range": [-0.55, 3.35], "visible": False, "fixedrange": True},
        300,
        (8, 8, 8, 74),
        annotations=[
            *arrows,
            plot.note(far, 0, 3.2, 13, **corner),
            plot.note("self-attention: 1 step", 0, 1.42, 13, **corner),
        ],
        shapes=[arc | {"line": {"color": ATTENTION, "width": 2.5}}] if steps else [],
    )
