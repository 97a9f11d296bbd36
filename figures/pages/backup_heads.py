"""Pairs of heads that are switched off together: a triangle of what they cost beyond each alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from figures.base import labels, style
from figures.base.cells import axis, colour_bar, hover, targets

_SIZE = 560
"""Px of the map's width and height, labels included."""
_LABELS = 44
_ROOM = 30
"""Up to this many heads, each has a label; with more, only every second, third, … head has one."""


@dataclass(frozen=True)
class Pairs:
    """Cost of ablating the heads of a kind."""

    heads: Sequence[tuple[int, int]]  # layer and head, from 0, in the order of both axes
    # (heads, heads) what a pair costs beyond the sum of each alone; on the diagonal what a head costs alone.
    # Negative is a cost.
    values: np.ndarray
    notes: Sequence[Sequence[str]]  # (heads, heads) hover texts of the lower triangle


def pairs_map(pairs: Pairs) -> go.Figure:
    """Draws the lower triangle of a measurement, on one diverging scale for pairs and single heads.

    The cells of single heads, on the diagonal, have a frame. A click on a cell gives a point whose
    `customdata` is (row, column), from 0.
    """
    values = np.where(np.tri(len(pairs.heads), dtype=bool), pairs.values, np.nan).astype(np.float32)
    end = max(float(np.nanmax(np.abs(values), initial=0.0)), 1e-3)
    names = [labels.head_name(*head) for head in pairs.heads]
    every = -(-len(names) // _ROOM)
    layout = {
        "xaxis": axis(names, "bottom", 9, every) | {"tickangle": -90},
        "yaxis": axis(names, "left", 9, every),
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
    """The colour bar, over the empty half of the map."""
    ticks = {value: labels.number(value, ".3f") for value in (-end, 0.0, end)}
    above = {"x": 0.96, "xanchor": "right", "y": 1, "ypad": 8}
    return colour_bar(ticks, 0.5, title="nats per token") | above


def _targets(pairs: Pairs) -> dict[str, Any]:
    places = [(i, j) for i in range(len(pairs.heads)) for j in range(i + 1)]
    return targets(
        [column for _, column in places],
        [row for row, _ in places],
        places,
        [hover(pairs.notes[i][j]) for i, j in places],
        14,
    )


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
