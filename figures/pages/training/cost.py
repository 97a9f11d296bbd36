"""Cost of layers, on two logarithmic axes: a power of n is a straight line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from figures.base import labels, style
from figures.pages.training.curves import titled_axis, upright

LOOKS = {
    "attention": (style.POSITIVE, "solid", "circle"),
    "written": (style.POSITIVE, "dot", "circle-open"),
    "recurrent": (style.NEGATIVE, "solid", "square"),
    "convolutional": ("#56B4E9", "dash", "diamond"),
    "restricted": ("#CC79A7", "dashdot", "triangle-up"),
    "parallel": (style.POSITIVE, "solid", "circle"),
    "cached": (style.NEGATIVE, "solid", "square"),
    "again": (style.NEGATIVE, "dot", "square-open"),
    "whole": (style.POSITIVE, "solid", "circle"),
    "masked": (style.POSITIVE, "dot", "circle-open"),
    "local": ("#CC79A7", "dashdot", "triangle-up"),
}
"""Colour, dash and mark of each kind of layer, and of each way to compute a target."""
_MEASURED, _COUNTED = ",~g", "~s"
"""Formats of the vertical axis for milliseconds and megabytes, and for numbers of operations."""
_ANY = ("rgba(128,128,128,.9)", "solid", "circle")


@dataclass(frozen=True)
class Cost:
    """One line."""

    key: str  # the kind, which gives the look
    name: str  # what the legend calls it
    x: Sequence[float]  # places
    y: Sequence[float]  # what it costs there


def costs(
    found: Sequence[Cost],  # the lines
    titles: tuple[str, str],  # what the horizontal and the vertical axis show; the second one with its unit
    # where a thin vertical line stands, and what is written beside it; None for none
    mark: tuple[float, str] | None = None,
    points: bool = True,  # whether each value has a mark of its own, as measured ones have
) -> go.Figure:
    """Draws costs against a length."""
    places = sorted({x for each in found for x in each.x})
    form = _MEASURED if points else _COUNTED
    layout = {
        "height": 330,
        "margin": {"l": 72, "r": 14, "t": 58, "b": 46},
        "xaxis": titled_axis(titles[0]) | _logarithmic() | _ticks(places),
        "yaxis": titled_axis(titles[1]) | _logarithmic() | {"tickformat": form, "dtick": 1},
        "shapes": [] if mark is None else [upright(mark[0])],
        "annotations": [] if mark is None else [_beside(*mark)],
        "dragmode": False,
        "hovermode": "closest",
        **style.LEGEND,
    }
    return style.figure(style.spec([_line(each, titles, points) for each in found], layout))


def _logarithmic() -> dict[str, Any]:
    return {"type": "log", "rangemode": "normal", "minor": {"showgrid": False}}


def _ticks(places: Sequence[float]) -> dict[str, Any]:
    """A label at each power of two that was measured, as far as there is room."""
    powers = [each for each in places if float(each).is_integer() and (int(each) & (int(each) - 1)) == 0]
    return {"tickmode": "array", "tickvals": powers, "ticktext": [f"{each:,}" for each in powers]}


def _line(each: Cost, titles: tuple[str, str], points: bool) -> dict[str, Any]:
    color, dash, symbol = LOOKS.get(each.key, _ANY)
    name, form = labels.escape(each.name), ",.3~r" if points else ".3~s"
    return {
        "type": "scatter",
        "mode": "lines+markers" if points else "lines",
        "name": name,
        "x": list(each.x),
        "y": list(each.y),
        "line": {"color": color, "dash": dash, "width": 2, "simplify": False},
        "marker": {"color": color, "symbol": symbol, "size": 7},
        "hovertemplate": f"{name}<br>{labels.escape(titles[0])} %{{x:,}}: %{{y:{form}}}<extra></extra>",
    }


def _beside(x: float, text: str) -> dict[str, Any]:
    return {
        "x": math.log10(x),
        "y": 1,
        "yref": "paper",
        "text": labels.escape(text),
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "top",
        "xshift": 4,
        "font": {"size": 10},
    }
