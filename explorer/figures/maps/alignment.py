"""Word alignments: links that attention implies, compared with links made by hand."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.grid import token_grid
from explorer.figures.maps.heatmap import LEGEND, legend, levels

Pair = tuple[int, int]
FOUND = "#56B4E9"
"""Colour of links that attention implies (Okabe and Ito palette); no attention kind uses this hue."""
NAMED = 64
"""Most words of a side for which each cell's hover text says which links it has."""
_BY_HAND = "rgba(110,110,110,1)"
_MARKS = 22
"""Px for the legend of the marks."""
_PITCH = 10
"""Least px from one word to the next: every word has room for its label."""


def size_for(words: int, usual: int) -> int:
    """Width in px of a map of `words` words, so that every word gets its label; at least `usual`."""
    around = style.margin(usual)
    return max(usual, around["l"] + around["r"] + _PITCH * words)


def alignment_map(
    weights: np.ndarray,  # (target words, source words) from 0 to 1
    source: Sequence[str],  # words of the columns
    target: Sequence[str],  # words of the rows
    found: Collection[Pair],  # (source word, target word) links that attention implies, drawn as dots
    sure: Collection[Pair],  # links made by hand, drawn as squares
    possible: Collection[Pair],  # links that an alignment may or may not have, drawn as dotted squares
    titles: tuple[str, str],  # titles of the rows and of the columns
    size: int = style.LARGE,  # width and height in px
) -> go.Figure:
    """Draws cross-attention between words, with links as marks on the cells.

    A click on a cell gives a point whose `customdata` is (source word, target word), from 0.
    """
    layout = token_grid(target, source, titles, size)
    below = layout["margin"]["b"] + LEGEND + _MARKS
    layout |= {"height": layout["height"] + LEGEND + _MARKS, "margin": layout["margin"] | {"b": below}}
    layout |= _legend()
    side = style.pitch(max(len(source), len(target)), size)
    cells = {
        "type": "heatmap",
        "z": levels(weights, np.ones(weights.shape, bool)),
        "zmin": 0,
        "zmax": 255,
        "colorscale": style.scale("cross"),
        "showlegend": False,
        "hoverinfo": "skip",
    } | legend()
    dots = _marks("link of attention", found, {"symbol": "circle", "size": 0.42 * side, "color": FOUND})
    layout["shapes"] = [
        *(_square(pair, "dot") for pair in sorted(set(possible) - set(sure))),
        *(_square(pair, "solid") for pair in sorted(sure)),
    ]
    marks = {"found": found, "sure": sure, "possible": possible}
    squares = [_square_in_legend(name) for name in _by_hand(sure, possible)]
    targets = _targets(weights, source, target, marks, side)
    return style.figure(style.spec([cells, dots, *squares, targets], layout))


def _legend() -> dict[str, Any]:
    place = {"orientation": "h", "x": 0, "xanchor": "left", "y": 0, "yanchor": "bottom", "yref": "container"}
    look = {"font": {"size": 10}, "itemclick": False, "itemdoubleclick": False}
    return {"showlegend": True, "legend": place | look}


def _by_hand(sure: Collection[Pair], possible: Collection[Pair]) -> list[str]:
    names = ["sure link made by hand"] if sure else []
    return [*names, "possible link (dotted)"] if set(possible) - set(sure) else names


def _square_in_legend(name: str) -> dict[str, Any]:
    """A trace without points: squares are shapes, which have no place in a legend."""
    marker = {"symbol": "square-open", "size": 10, "color": _BY_HAND, "line": {"width": 2}}
    return {"type": "scatter", "mode": "markers", "name": name, "x": [None], "y": [None], "marker": marker}


def _marks(name: str, pairs: Collection[Pair], marker: dict[str, Any]) -> dict[str, Any]:
    places = sorted(pairs)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": np.array([i for i, _ in places], dtype=np.float32),
        "y": np.array([j for _, j in places], dtype=np.float32),
        "marker": {**marker, "line": {"width": 1, "color": "rgba(0,0,0,.5)"}},
        "hoverinfo": "skip",
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
    }


def _square(pair: Pair, dash: str) -> dict[str, Any]:
    i, j = pair
    box = {"x0": i - 0.42, "x1": i + 0.42, "y0": j - 0.42, "y1": j + 0.42}
    return {"type": "rect", **box, "line": {"color": _BY_HAND, "width": 2.5, "dash": dash}}


def _targets(
    weights: np.ndarray,
    source: Sequence[str],
    target: Sequence[str],
    marks: dict[str, Collection[Pair]],
    side: float,
) -> dict[str, Any]:
    """Invisible squares over the cells, because Streamlit reports no clicks on a heatmap."""
    pairs = [(i, j) for j in range(len(target)) for i in range(len(source))]
    unseen = {"marker": {"opacity": 0}}
    return {
        "type": "scatter",
        "mode": "markers",
        "showlegend": False,
        "x": np.array([i for i, _ in pairs], dtype=np.uint8),
        "y": np.array([j for _, j in pairs], dtype=np.uint8),
        "customdata": [(i, j, round(float(weights[j, i]), 3)) for i, j in pairs],
        **_hover(source, target, marks, pairs),
        "marker": {"symbol": "square", "size": 0.95 * side, "opacity": 0, "maxdisplayed": 0},
        "selected": unseen,
        "unselected": unseen,
    }


def _hover(
    source: Sequence[str], target: Sequence[str], marks: dict[str, Collection[Pair]], pairs: Sequence[Pair]
) -> dict[str, Any]:
    """Hover texts with words, links and weight; in a very large map, without the links."""
    weight = "<br>weight %{customdata[2]:.2f}<extra></extra>"
    if max(len(source), len(target)) > NAMED:
        return {"hovertemplate": f"%{{y}} – %{{x}}{weight}"}
    rows, columns = labels.names(target), labels.names(source)
    texts = {"found": "linked by attention", "sure": "sure link", "possible": "possible link"}
    sets = {name: frozenset(of) for name, of in marks.items()}

    def said(pair: Pair) -> str:
        told = [text for name, text in texts.items() if pair in sets[name]]
        if pair in sets["sure"] and "possible link" in told:
            told.remove("possible link")
        name = f"{rows[pair[1]]} – {columns[pair[0]]}"
        return labels.escape(f"{name} ({', '.join(told)})" if told else name)

    return {"text": [said(pair) for pair in pairs], "hovertemplate": f"%{{text}}{weight}"}
