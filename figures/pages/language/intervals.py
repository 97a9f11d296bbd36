"""Values with intervals as dots and whiskers, several in a row: one row for each case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from figures.base import labels, style
from figures.base.cells import axis, hover
from figures.pages.training.curves import titled_axis, upright

_ROW = 58
_APART = 0.24
"""Distance between the dots of one row, in rows."""
_NAME = 0.36
"""Height of the name of a row above its middle, in rows."""


@dataclass(frozen=True)
class Dots:
    """One dot with its whiskers in each row."""

    name: str  # what the legend calls them
    # ``value``, ``low`` and ``high`` for each row; None for a row without a dot
    cells: Sequence[Mapping[str, float] | None]
    notes: Sequence[str]  # hover texts
    color: str  # of dots and whiskers
    symbol: str = "circle"  # of the dots, as Plotly names it
    single: Sequence[Sequence[float]] = ()  # single measurements behind each dot, drawn as faint ticks


def dots(
    rows: Sequence[str],  # their names
    found: Sequence[Dots],  # the dots
    title: str,  # the measured quantity
    mark: float,  # where a thin vertical line stands, such as chance
) -> go.Figure:
    """Draws the rows from the top down; the name of each stands above its dots, which leaves phones room."""
    data = [trace for at, each in enumerate(found) for trace in _traces(each, _shift(at, len(found)))]
    across = titled_axis(title) | {"tickformat": "~g", "rangemode": "tozero"}
    layout = {
        "height": 92 + _ROW * len(rows),
        "margin": {"l": 16, "r": 16, "t": 40, "b": 48},
        "xaxis": across,
        "yaxis": axis([""] * len(rows), "left") | {"range": [len(rows) - 0.5, -0.6]},
        "annotations": [_name(row, at) for at, row in enumerate(rows)],
        "shapes": [upright(mark)],
        "dragmode": False,
        "hovermode": "closest",
        **style.LEGEND,
    }
    return style.figure(style.spec(data, layout))


def _name(row: str, at: int) -> dict[str, Any]:
    return {
        "text": labels.escape(row),
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": at - _NAME,
        "yanchor": "middle",
        "showarrow": False,
        "font": {"size": 12},
    }


def _shift(at: int, count: int) -> float:
    return _APART * (at - (count - 1) / 2)


def _traces(each: Dots, shift: float) -> list[dict[str, Any]]:
    places = [row + shift for row in range(len(each.cells))]
    faint = [(value, place) for place, row in zip(places, each.single, strict=False) for value in row]
    ticks = {
        "type": "scatter",
        "mode": "markers",
        "x": [value for value, _ in faint],
        "y": [place for _, place in faint],
        "marker": {"symbol": "line-ns", "size": 9, "line": {"width": 1, "color": style.NEUTRAL}},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return [*([ticks] if faint else []), _dots(each, places)]


def _dots(each: Dots, places: Sequence[float]) -> dict[str, Any]:
    shown = [(place, cell) for place, cell in zip(places, each.cells, strict=True) if cell is not None]
    notes = [note for note, cell in zip(each.notes, each.cells, strict=True) if cell is not None]
    reach = {
        "type": "data",
        "symmetric": False,
        "array": [cell["high"] - cell["value"] for _, cell in shown],
        "arrayminus": [cell["value"] - cell["low"] for _, cell in shown],
        "thickness": 1.5,
        "width": 4,
        "color": each.color,
    }
    return {
        "type": "scatter",
        "mode": "markers",
        "name": labels.escape(each.name),
        "x": [cell["value"] for _, cell in shown],
        "y": [place for place, _ in shown],
        "error_x": reach,
        "marker": {"color": each.color, "symbol": each.symbol, "size": 10},
        "hovertext": [hover(note) for note in notes],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
