"""The loss of one position: the model against the smoothed target, and the gradient of the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from figures.base import labels, style
from figures.base.bars import percent

MODEL, TARGET = style.NEUTRAL, style.POSITIVE
_ROW = 31
_ROOM = 0.3
"""Space beyond the longest bar for its number, as a share of the axis."""


@dataclass(frozen=True)
class Piece:
    """One row: a piece of the vocabulary, or all others together.

    Attributes:
        name: the piece as people read it.
        share: the model's probability p.
        target: the smoothed target's probability q.
        bare: the target's probability without smoothing.
    """

    name: str
    share: float
    target: float
    bare: float


def against_target(pieces: Sequence[Piece], right: int) -> go.Figure:
    """Draws the model's distribution beside the smoothed target.

    Args:
        pieces: the rows, from the top down.
        right: the row of the right piece.
    """
    sides = (
        _bars("the model, p", [each.share for each in pieces], small, MODEL),
        _bars("the target, q", [each.target for each in pieces], small, TARGET),
    )
    return _rows(sides, pieces, right, (0.0, 1.0))


def gradient_bars(pieces: Sequence[Piece], right: int) -> go.Figure:
    """Draws the gradient with respect to each logit, without smoothing and with it.

    Args:
        pieces: the rows, from the top down.
        right: the row of the right piece.
    """
    bare = [each.share - each.bare for each in pieces]
    smoothed = [each.share - each.target for each in pieces]
    ends = min(0.0, *bare, *smoothed), max(0.0, *bare, *smoothed, 1e-6)
    sides = (
        _bars("without smoothing", bare, _signed, MODEL),
        _bars("with smoothing", smoothed, _signed, TARGET),
    )
    return _rows(sides, pieces, right, ends)


def small(share: float) -> str:
    """A probability as people read it, with as many digits as a very small one needs."""
    if not 0 < share < 0.001:
        return percent(share)
    return f"{100 * share:.1g} %" if share >= 1e-7 else "<0.00001 %"


def _signed(value: float) -> str:
    if abs(value) < 5e-7:
        return "0"
    if abs(value) >= 0.095:
        return labels.number(value, "+.2f")
    return labels.number(value, "+.1e" if abs(value) < 1e-4 else "+.2g").replace("e−0", "e−")


def _bars(name: str, values: Sequence[float], write: Callable[[float], str], color: str) -> dict[str, Any]:
    texts = [labels.escape(write(value)) for value in values]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": list(values),
        "y": list(range(len(values))),
        "marker": {"color": color},
        "text": texts,
        "textposition": "outside",
        "constraintext": "none",
        "textfont": {"size": 10},
        "cliponaxis": False,
        "hovertext": texts,
        "hovertemplate": f"{name}: %{{hovertext}}<extra></extra>",
    }


def _rows(
    sides: Sequence[dict[str, Any]], pieces: Sequence[Piece], right: int, ends: tuple[float, float]
) -> go.Figure:
    """Two bars for each piece; the name of the right piece is bold."""
    names = [labels.escape(labels.shorten(each.name, 16)) for each in pieces]
    names[right] = f"<b>{names[right]}</b>"
    low, high = ends
    room = _ROOM * (high - low)
    layout = {
        "height": 50 + _ROW * len(pieces),
        "margin": {"l": 118, "r": 8, "t": 34, "b": 6},
        "bargap": 0.3,
        "bargroupgap": 0.05,
        "barmode": "group",
        "xaxis": {
            "range": [low - room if low else 0, high + room],
            "showgrid": False,
            "showticklabels": False,
            "zeroline": low < 0,
            "zerolinecolor": "rgba(128,128,128,.6)",
            "fixedrange": True,
        },
        "yaxis": {
            "tickvals": list(range(len(pieces))),
            "ticktext": names,
            "range": [len(pieces) - 0.45, -0.55],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
            "ticks": "",
        },
        "dragmode": False,
        "showlegend": True,
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "top",
            "yref": "container",
            "font": {"size": 11},
            "itemclick": False,
            "itemdoubleclick": False,
            "traceorder": "normal",
        },
    }
    return style.figure(style.spec(list(sides), layout))
