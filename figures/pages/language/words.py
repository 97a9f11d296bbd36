"""Words in a plane at one step of a training: a dot for each, names as far as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from figures.base import labels, style
from figures.base.cells import hover

HEIGHT = 560
_WIDE, _LETTER, _LINE = 600, 6.6, 16
"""Px of the map's width, of a letter and of a line: estimates, by which names are kept apart."""
_COLORS = (
    *("#CC79A7", "#56B4E9", "#E69F00", "#7F7FD5", "#44AA99", "#BB5566", "#999933"),
    *("#6699CC", "#AA4499", "#C9A227", "#5DA87A", "#B0785A", "#8C8C8C", "#4FB3BF"),
)
_SYMBOLS = ("circle", "diamond")


@dataclass(frozen=True)
class Plane:
    """Where words are at one step."""

    words: Sequence[str]  # their texts
    groups: Sequence[str]  # the group of each
    points: np.ndarray  # (words, 2) places
    ends: np.ndarray  # (2, 2) the smallest and the largest place of the whole training, by axis
    notes: Sequence[str]  # hover texts
    chosen: int  # the word (from 0) that is looked at
    near: Sequence[int]  # its neighbours among the words
    path: np.ndarray  # (steps, 2) its places up to this step


def word_map(plane: Plane) -> go.Figure:
    """Draws the map; a click on a dot gives its word, counted from 0."""
    named = _roomy(plane)
    names = list(dict.fromkeys(plane.groups))
    data = [_path(plane), *(_group(plane, name, at, named) for at, name in enumerate(names)), _ring(plane)]
    ranges = [[low - 0.06 * (high - low), high + 0.06 * (high - low)] for low, high in plane.ends.T]
    still = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "fixedrange": True}
    layout = {
        "height": HEIGHT,
        "margin": {"l": 8, "r": 8, "t": 64, "b": 8},
        "xaxis": {**still, "range": ranges[0]},
        "yaxis": {**still, "range": ranges[1]},
        "dragmode": False,
        "clickmode": "event+select",
        "hovermode": "closest",
        **style.LEGEND,
    }
    return style.figure(style.spec(data, layout))


def _roomy(plane: Plane) -> set[int]:
    """The words whose names are drawn: the chosen one, its neighbours, and those that cover no other name."""
    low, high = plane.ends
    share = (plane.points - low) / np.maximum(high - low, 1e-9)
    places = share * [0.89 * _WIDE, 0.89 * (HEIGHT - 72)]
    first = [plane.chosen, *plane.near]
    taken: list[tuple[float, float, float]] = []
    found = set()
    for at in dict.fromkeys([*first, *range(len(plane.words))]):
        half, (x, y) = _LETTER * len(plane.words[at]) / 2 + 4, places[at]
        free = all(abs(x - a) > half + b or abs(y - c) > _LINE for a, c, b in taken)
        if free or at in first:
            found.add(at)
            taken.append((x, y, half))
    return found


def _group(plane: Plane, name: str, number: int, named: set[int]) -> dict[str, Any]:
    own = [at for at, group in enumerate(plane.groups) if group == name]
    marked = {plane.chosen, *plane.near}
    texts = [labels.escape(plane.words[at]) if at in named else "" for at in own]
    color = _COLORS[number % len(_COLORS)]
    same = {"marker": {"opacity": 1}}
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": labels.escape(name),
        "x": plane.points[own, 0],
        "y": plane.points[own, 1],
        "text": [f"<b>{text}</b>" if at in marked else text for at, text in zip(own, texts, strict=True)],
        "textposition": "top center",
        "textfont": {"size": 11},
        "marker": {"color": color, "size": 8, "symbol": _SYMBOLS[number % 2]},
        "customdata": own,
        "hovertext": [hover(plane.notes[at]) for at in own],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "selected": same,
        "unselected": same,
    }


def _ring(plane: Plane) -> dict[str, Any]:
    """A ring around the chosen word, and thinner ones around its neighbours."""
    places = [plane.chosen, *plane.near]
    widths = [2.5, *(1.2 for _ in plane.near)]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": plane.points[places, 0],
        "y": plane.points[places, 1],
        "marker": {
            "symbol": "circle-open",
            "size": [17, *(14 for _ in plane.near)],
            "color": style.CHOSEN,
            "line": {"width": widths},
        },
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _path(plane: Plane) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": plane.path[:, 0],
        "y": plane.path[:, 1],
        "line": {"color": style.NEUTRAL, "width": 1.5, "dash": "dot"},
        "hoverinfo": "skip",
        "showlegend": False,
    }
