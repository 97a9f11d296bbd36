"""The page Recurrent: predicted centres on a map, and the ways that information takes in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style

RECURRENT, ATTENTION = style.NEGATIVE, style.POSITIVE
"""Colours of the two ways through a sentence; neither is the hue of a kind of attention."""
_FAINT = "rgba(128,128,128,.55)"
_MOST_PLACES = 60
"""The most tokens of which each has a label of its own."""


def with_centres(
    figure: go.Figure,  # the map
    centres: np.ndarray,  # (rows,) a place among all keys for each row of the map, counted from 0
    first: int,  # the first key of the map
    keys: int,  # how many keys the map has
) -> go.Figure:
    """Marks on a map where each query of local attention looks."""
    places = np.asarray(centres, np.float32) - first
    inside = (places >= -0.5) & (places <= keys - 0.5)
    figure.add_scatter(
        x=np.where(inside, places, np.nan),
        y=np.arange(len(places)),
        mode="markers",
        marker={"symbol": "line-ns", "size": 13, "line": {"width": 2.5, "color": style.POSITIVE}},
        customdata=np.asarray(centres, np.float32) + 1,
        hovertemplate="predicted centre: position %{customdata:.1f}<extra></extra>",
    )
    return figure


def paths(
    tokens: Sequence[str],  # the pieces of the sentence
    ends: tuple[int, int],  # the place where the information starts, and the place where it is needed, from 0
) -> go.Figure:
    """The way of information from one token of a sentence to another: through every state, or directly."""
    count, (start, stop) = len(tokens), sorted(ends)
    names = labels.ticks(tokens, 5.5)
    data = [
        _row(names, 2.0, _FAINT),
        _row(names, 0.0, _FAINT),
        _marked(start, stop, 2.0, RECURRENT, range(start, stop + 1)),
        _marked(start, stop, 0.0, ATTENTION, (start, stop)),
    ]
    arrows = [_arrow(i, i + 1, start <= i < stop) for i in range(count - 1)]
    layout: dict[str, Any] = {
        "height": 300,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 74},
        "xaxis": _tokens(names),
        "yaxis": {"range": [-0.55, 3.35], "visible": False, "fixedrange": True},
        "annotations": [*arrows, *_titles(stop - start)],
        "shapes": [_arc(start, stop)] if stop > start else [],
        "dragmode": False,
    }
    return style.figure(style.spec(data, layout))


def _row(names: Sequence[str], height: float, color: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": list(range(len(names))),
        "y": [height] * len(names),
        "marker": {"size": 9, "color": "rgba(0,0,0,0)", "line": {"width": 1.5, "color": color}},
        "customdata": list(names),
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _marked(start: int, stop: int, height: float, color: str, places: Sequence[int]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": list(places),
        "y": [height] * len(places),
        "marker": {"size": [13 if place in (start, stop) else 9 for place in places], "color": color},
        "hoverinfo": "skip",
    }


def _arrow(start: int, stop: int, used: bool) -> dict[str, Any]:
    """From one state of a recurrent network to the next."""
    return {
        "x": stop - 0.12,
        "y": 2.0,
        "ax": start + 0.12,
        "ay": 2.0,
        "xref": "x",
        "yref": "y",
        "axref": "x",
        "ayref": "y",
        "showarrow": True,
        "arrowhead": 2,
        "arrowsize": 0.9,
        "arrowwidth": 2.2 if used else 1.1,
        "arrowcolor": RECURRENT if used else _FAINT,
        "text": "",
    }


def _arc(start: int, stop: int) -> dict[str, Any]:
    """Straight from one place to another, above the row."""
    middle = (start + stop) / 2
    return {
        "type": "path",
        "path": f"M {start} 0.12 Q {middle} 1.9 {stop} 0.12",
        "line": {"color": ATTENTION, "width": 2.5},
    }


def _titles(steps: int) -> list[dict[str, Any]]:
    told = {
        3.2: f"recurrent: {steps} step{'s' * (steps != 1)}, one after the other",
        1.42: "self-attention: 1 step",
    }
    if steps == 0:
        told = {3.2: "recurrent: no step", 1.42: "self-attention: 1 step"}
    return [
        {
            "text": text,
            "x": 0,
            "y": height,
            "xref": "paper",
            "yref": "y",
            "xanchor": "left",
            "yanchor": "top",
            "showarrow": False,
            "font": {"size": 13},
        }
        for height, text in told.items()
    ]


def _tokens(names: Sequence[str]) -> dict[str, Any]:
    step = -(-len(names) // _MOST_PLACES)
    shown = range(0, len(names), step)
    return {
        "tickmode": "array",
        "tickvals": list(shown),
        "ticktext": [names[i] for i in shown],
        "tickfont": {"size": 12 if len(names) <= 24 else 9},
        "tickangle": -60,
        "range": [-0.6, len(names) - 0.4],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
        "ticks": "",
    }
