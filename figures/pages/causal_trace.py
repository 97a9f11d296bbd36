"""A causal trace: what one place of the model brings back, as maps of tokens and places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from figures.base import labels, style
from figures.base.cells import axis, colour_bar, hover, targets

_ROWS = {"few": 24, "many": 15}
"""Px of a row: of a map with few rows, and of one with many."""
_MANY = 12
_LABELS = 74
"""Px above a map for its tokens."""
_LEGEND = 40
_FULL = 1.1
"""Largest share that still has the colour of 1."""


@dataclass(frozen=True)
class TracePanel:
    """One group of places, such as the stream of the encoder."""

    name: str  # comes back with a click, so that the page knows the group
    rows: Sequence[str]  # names of the places, from top to bottom
    tokens: Sequence[str]  # the tokens at whose positions a place was patched, from left to right
    shares: np.ndarray  # (rows, tokens) what comes back: 0 for nothing, 1 for everything
    notes: Sequence[Sequence[str]]  # (rows, tokens) hover texts
    parted: Sequence[int] = ()  # the first row of each block of rows, from 0; a line is drawn over it


def trace_end(panels: Sequence[TracePanel]) -> float:
    """The end of the colour scale that panels share, both ways: 1, or the next tenth above a share of 1.1."""
    most = max(float(np.abs(panel.shares).max(initial=0.0)) for panel in panels)
    return 1.0 if most <= _FULL else float(np.ceil(10 * most - 1e-6) / 10)


def trace_map(
    panel: TracePanel,  # the places
    end: float,  # the colour scale runs from −end to end
    legend: bool = True,  # whether to draw the colour scale under the map
) -> go.Figure:
    """Draws a panel as a heatmap: rows are places, columns are tokens.

    A click on a cell gives a point whose `customdata` is (name, row, column), both from 0.
    """
    height = _ROWS["few" if len(panel.rows) <= _MANY else "many"]
    below = _LEGEND if legend else 6
    layout = {
        "xaxis": axis(labels.ticks(panel.tokens), "top") | {"tickangle": -90},
        "yaxis": axis(list(map(labels.escape, panel.rows)), "left"),
        "height": _LABELS + height * len(panel.rows) + below,
        "margin": {"l": 84, "t": _LABELS, "r": 6, "b": below},
        "shapes": [_ground(), *(_line(row - 0.5) for row in panel.parted)],
        "dragmode": False,
        "clickmode": "event+select",
        "hovermode": "closest",
    }
    return style.figure(style.spec([_cells(panel, end, legend), _targets(panel)], layout))


def _cells(panel: TracePanel, end: float, legend: bool) -> dict[str, Any]:
    most = f"{100 * end:.0f}{labels.PER_CENT}"
    ticks = {-end: f"−{most}", 0.0: f"0{labels.PER_CENT}", end: f"{most} comes back"}
    found = {
        "type": "heatmap",
        "z": panel.shares.astype(np.float32),
        "zmin": -end,
        "zmax": end,
        "xgap": 1,
        "ygap": 1,
        "colorscale": style.diverging(),
        "showscale": legend,
        "hoverinfo": "skip",
    }
    return found | ({"colorbar": colour_bar(ticks, 0.6)} if legend else {})


def _targets(panel: TracePanel) -> dict[str, Any]:
    places = [(i, j) for i in range(len(panel.rows)) for j in range(len(panel.tokens))]
    return targets(
        [column for _, column in places],
        [row for row, _ in places],
        [(panel.name, *place) for place in places],
        [hover(panel.notes[i][j]) for i, j in places],
        14,
    )


def _ground() -> dict[str, Any]:
    """A faint ground, so that a share of 0 is seen as a cell."""
    box = {"xref": "paper", "x0": 0, "x1": 1, "yref": "paper", "y0": 0, "y1": 1}
    look = {"fillcolor": style.rgba("#808080", style.FAINTEST), "line": {"width": 0}, "layer": "below"}
    return {"type": "rect", **box, **look}


def _line(y: float) -> dict[str, Any]:
    line = {"color": style.NEUTRAL, "width": 1}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}
