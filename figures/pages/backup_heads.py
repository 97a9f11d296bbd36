"""Pairs of heads that are switched off together: a triangle of what they cost beyond each alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from figures.base import labels, style

_SIZE = 560
"""Px of the map's width and height, labels included."""
_LABELS = 44
_ROOM = 30
"""Most heads of which each has a label; of more, every other one, and so on."""


@dataclass(frozen=True)
class Pairs:
    """What ablating the heads of a kind costs.

    Attributes:
        heads: Layer and head, from 0, in the order of both axes.
        values: (heads, heads) what a pair costs beyond the sum of each alone; on the diagonal what a head
            costs alone. Negative is a cost.
        notes: (heads, heads) hover texts of the lower triangle.
    """

    heads: Sequence[tuple[int, int]]
    values: np.ndarray
    notes: Sequence[Sequence[str]]


def pairs_map(pairs: Pairs) -> go.Figure:
    """Draws the lower triangle of a measurement, on one diverging scale for pairs and single heads.

    The cells of single heads, on the diagonal, have a frame. A click on a cell gives a point whose
    `customdata` is (row, column), from 0.
    """
    values = np.where(np.tri(len(pairs.heads), dtype=bool), pairs.values, np.nan).astype(np.float32)
    end = max(float(np.nanmax(np.abs(values), initial=0.0)), 1e-3)
    names = [labels.head_name(*head) for head in pairs.heads]
    layout = {
        "xaxis": _axis(names, "bottom") | {"tickangle": -90},
        "yaxis": _axis(names, "left") | {"range": [len(names) - 0.5, -0.5]},
        "height": _SIZE,
        "margin": {"l": _LABELS, "t": 6, "r": 6, "b": _LABELS},
        "shapes": [*(_frame(at) for at in range(len(names))), *_lines(pairs.heads)],
        "dragmode": False,
        "clickmode": "event+select",
        "hovermode": "closest",
    }
    cells = {
        "type": "heatmap",
        "z": values,
        "zmin": -end,
        "zmax": end,
        "xgap": 1,
        "ygap": 1,
        "colorscale": style.diverging(),
        "colorbar": _scale(end),
        "hoverinfo": "skip",
    }
    return style.figure(style.spec([cells, _targets(pairs)], layout))


def _scale(end: float) -> dict[str, Any]:
    """The colour bar over the empty half of the map."""
    return {
        "orientation": "h",
        "x": 0.96,
        "xanchor": "right",
        "y": 1,
        "yanchor": "top",
        "xpad": 0,
        "ypad": 8,
        "len": 0.5,
        "thickness": 8,
        "outlinewidth": 0,
        "tickvals": [-end, 0, end],
        "ticktext": [labels.number(value, ".3f") for value in (-end, 0, end)],
        "tickfont": {"size": 10},
        "title": {"text": "nats per token", "side": "top", "font": {"size": 10}},
    }


def _targets(pairs: Pairs) -> dict[str, Any]:
    """Invisible squares over the cells, because Streamlit reports no clicks on a heatmap."""
    places = [(i, j) for i in range(len(pairs.heads)) for j in range(i + 1)]
    unseen = {"marker": {"opacity": 0}}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [column for _, column in places],
        "y": [row for row, _ in places],
        "customdata": places,
        "hovertext": [labels.escape(pairs.notes[i][j]).replace("\n", "<br>") for i, j in places],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"symbol": "square", "size": 14, "opacity": 0, "color": "rgba(128,128,128,1)"},
        "selected": unseen,
        "unselected": unseen,
    }


def _axis(names: Sequence[str], side: str) -> dict[str, Any]:
    shown = range(0, len(names), -(-len(names) // _ROOM))
    return {
        "tickmode": "array",
        "tickvals": list(shown),
        "ticktext": [names[at] for at in shown],
        "side": side,
        "range": [-0.5, len(names) - 0.5],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
        "ticks": "",
        "tickfont": {"size": 9},
    }


def _frame(at: int) -> dict[str, Any]:
    """The frame of a single head."""
    place = {"x0": at - 0.5, "x1": at + 0.5, "y0": at - 0.5, "y1": at + 0.5}
    return {"type": "rect", **place, "line": {"color": style.NEUTRAL, "width": 1}}


def _lines(heads: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """Lines between the layers, as far as the triangle reaches."""
    line = {"color": style.NEUTRAL, "width": 1}
    last, found = len(heads) - 0.5, []
    for at in range(1, len(heads)):
        if heads[at][0] != heads[at - 1][0]:
            edge = at - 0.5
            found.append({"type": "line", "x0": -0.5, "x1": edge, "y0": edge, "y1": edge, "line": line})
            found.append({"type": "line", "x0": edge, "x1": edge, "y0": edge, "y1": last, "line": line})
    return found
