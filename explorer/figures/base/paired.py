"""Two bars for each row, with their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from explorer.figures.base import style

_ROOM = 0.3
"""Space beyond the longest bar for its number, as a share of the axis."""


@dataclass(frozen=True)
class Bars:
    """One of the two bars of every row."""

    name: str  # its name in the legend
    values: Sequence[float]  # one per row
    texts: Sequence[str]  # the numbers beside the bars, escaped
    notes: Sequence[str]  # the hover texts, escaped
    color: str  # the colour of the bars


def paired_bars(
    names: Sequence[str],  # the names of the rows, escaped
    sides: tuple[Bars, Bars],  # the two bars
    bold: int,  # the row whose name is bold
    ends: tuple[float, float],  # the ends of the axis, without the room for numbers
    row: int,  # px of a row
) -> go.Figure:
    """Draws the rows from the top down."""
    low, high = ends
    room = _ROOM * (high - low)
    still = {"showgrid": False, "fixedrange": True, "ticks": ""}
    layout = {
        "height": 50 + row * len(names),
        "margin": {"l": 118, "r": 8, "t": 34, "b": 6},
        "bargap": 0.3,
        "bargroupgap": 0.05,
        "barmode": "group",
        "xaxis": {
            **still,
            "range": [low - room if low else 0, high + room],
            "showticklabels": False,
            "zeroline": low < 0,
            "zerolinecolor": "rgba(128,128,128,.6)",
        },
        "yaxis": {
            **still,
            "tickvals": list(range(len(names))),
            "ticktext": [f"<b>{name}</b>" if at == bold else name for at, name in enumerate(names)],
            "range": [len(names) - 0.45, -0.55],
            "zeroline": False,
        },
        "dragmode": False,
        **style.LEGEND,
    }
    return style.figure(style.spec([_bars(side) for side in sides], layout))


def _bars(side: Bars) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": side.name,
        "x": list(side.values),
        "y": list(range(len(side.values))),
        "marker": {"color": side.color},
        "text": list(side.texts),
        "textposition": "outside",
        "constraintext": "none",
        "textfont": {"size": 10},
        "cliponaxis": False,
        "hovertext": list(side.notes),
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
