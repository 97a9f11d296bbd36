"""Figures of the page "Is attention an explanation?": measures of keys, shares, parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.cells import axis

_ROW, _LEFT, _TOP = 34, 150, 74
_NUMBERS = 16
"""Up to this many columns, each cell says its number."""


_FADED = 1.5
"""End of the scale, in shares: below full colour, so that numbers can be read in every cell."""
_LEAST = {True: 0.1, False: 1e-6}
"""Least end of a scale: changes below it, in nats, stay pale."""


@dataclass(frozen=True, eq=False)
class MeasureRow:
    """A measure of every column."""

    name: str
    values: np.ndarray  # (columns,), not a number where there is none
    signed: bool = False  # whether it is a change in nats; such rows share one scale


def measures_map(rows: Sequence[MeasureRow], columns: Sequence[str], ink: str = "#1d232c") -> go.Figure:
    """Measures as rows; the colour is a share of the row's largest number, or of all rows' in nats."""
    shared = [row for row in rows if row.signed]
    ends = [_end(shared if row.signed else [row]) for row in rows]
    texts = [[_said(value, row.signed) for value in row.values.tolist()] for row in rows]
    notes = [
        [labels.escape(f"{row.name} · {column}: {text}") for column, text in zip(columns, said, strict=True)]
        for row, said in zip(rows, texts, strict=True)
    ]
    cells = {
        "type": "heatmap",
        "z": np.array([row.values / end for row, end in zip(rows, ends, strict=True)], dtype=np.float32),
        "zmin": -_FADED,
        "zmax": _FADED,
        "xgap": 1,
        "ygap": 1,
        "colorscale": style.diverging(),
        "showscale": False,
        "hovertext": notes,
        "hoverinfo": "text",
    }
    if len(columns) <= _NUMBERS:
        cells |= {"text": texts, "texttemplate": "%{text}", "textfont": {"size": 10, "color": ink}}
    every = max(1, len(columns) // 48)
    layout = {
        "xaxis": axis([labels.escape(each) for each in columns], "top", 11, every) | {"tickangle": -90},
        "yaxis": axis([labels.escape(row.name) for row in rows], "left", 11),
        "height": _TOP + _ROW * len(rows) + 8,
        "margin": {"l": _LEFT, "t": _TOP, "r": 6, "b": 8},
        "dragmode": False,
    }
    return style.figure(style.spec([cells], layout))


def _end(rows: Sequence[MeasureRow]) -> float:
    largest = max(float(np.nanmax(np.abs(row.values), initial=0.0)) for row in rows)
    return max(largest, _LEAST[rows[0].signed])


def _said(value: float, signed: bool) -> str:
    """A cell's number: "0" is a zero, up to rounding, and "0.00" is more than that."""
    if value != value:
        return "–"
    return "0" if abs(value) < labels.ROUNDING else labels.number(value, "+.2f" if signed else ".2f")


def share_bars(
    steps: Sequence[str],  # the names of the steps
    source: np.ndarray,  # (steps,) the source's share of each, from 0 to 1
    compared: tuple[str, np.ndarray],  # another measure of the same shares, with its name
    hues: tuple[str, str],  # of source and prefix
) -> go.Figure:
    """The source's share of every step under the prefix's, and another measure as marks."""
    places, name = list(range(len(steps))), compared[0]
    bars = [
        {
            "type": "bar",
            "name": what,
            "x": places,
            "y": values.astype(np.float32),
            "marker": {"color": hue},
            "hovertext": [
                labels.escape(f"{step}: {what} {value:.2f}")
                for step, value in zip(steps, values.tolist(), strict=True)
            ],
            "hoverinfo": "text",
        }
        for what, values, hue in (("source", source, hues[0]), ("prefix", 1 - source, hues[1]))
    ]
    marks = {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": places,
        "y": compared[1].astype(np.float32),
        "marker": {"symbol": "diamond", "size": 9, "color": "#fff", "line": {"width": 1.5, "color": "#333"}},
        "hovertext": [f"{name}: source {value:.2f}" for value in compared[1].tolist()],
        "hoverinfo": "text",
    }
    layout = {
        "barmode": "stack",
        "bargap": 0.25,
        "xaxis": axis([labels.escape(each) for each in steps], "bottom", 11) | {"tickangle": -90},
        "yaxis": {"range": [0, 1], "tickvals": [0, 0.5, 1], "title": {"text": "share"}, "fixedrange": True},
        "height": 300,
        "margin": {"l": 52, "t": 30, "r": 8, "b": 86},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "showlegend": True,
        "dragmode": False,
    }
    return style.figure(style.spec([*bars, marks], layout))


def part_bars(names: Sequence[str], values: np.ndarray) -> go.Figure:
    """Parts of a sum as bars, from the top, with their numbers."""
    values = values.astype(np.float32)
    texts = [labels.number(value, "+.2f") for value in values.tolist()]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": list(range(len(names))),
        "text": texts,
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"size": 10},
        "marker": {"color": [style.POSITIVE if value > 0 else style.NEGATIVE for value in values.tolist()]},
        "hovertext": [labels.escape(f"{name}: {each} nats") for name, each in zip(names, texts, strict=True)],
        "hoverinfo": "text",
    }
    room = 1.25 * max(float(np.abs(values).max(initial=0.0)), 1e-3)
    layout = {
        "xaxis": {"title": {"text": "nats"}, "range": [-room, room], "zeroline": True},
        "yaxis": axis([labels.escape(name) for name in names], "left", 11),
        "height": 24 * len(names) + 56,
        "margin": {"l": 20 + 7 * max(map(len, names), default=20), "t": 8, "r": 8, "b": 44},
        "dragmode": False,
    }
    return style.figure(style.spec([bars], layout))
