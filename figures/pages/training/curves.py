"""Quantities of training as lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from figures.base import labels, style

_GRID = "rgba(128,128,128,.22)"


@dataclass(frozen=True)
class Curve:
    """One line."""

    name: str  # what the legend calls it
    x: Sequence[float]  # where its values are measured, such as steps
    y: Sequence[float]  # the values
    color: str  # of the line
    dash: str = "solid"  # of the line, as Plotly names it
    width: float = 2  # of the line, in px


def curves(
    lines: Sequence[Curve],  # the lines
    titles: tuple[str, str],  # what the horizontal and the vertical axis show
    mark: float | None = None,  # where a thin vertical line stands; None for none
) -> go.Figure:
    """Draws some lines from zero on."""
    x, y = titles
    layout = {
        "height": 340,
        "margin": {"l": 72, "r": 14, "t": 34, "b": 46},
        "xaxis": titled_axis(x) | {"rangemode": "tozero", "tickformat": ",d"},
        "yaxis": titled_axis(y) | {"rangemode": "tozero", "tickformat": "~g"},
        "shapes": [] if mark is None else [upright(mark)],
        "dragmode": False,
        "hovermode": "closest",
        **style.LEGEND,
    }
    return style.figure(style.spec([line(each, x) for each in lines], layout))


def titled_axis(title: str) -> dict[str, Any]:
    """An axis with numbers and a title."""
    return {
        "title": {"text": title, "font": {"size": 11}, "standoff": 8},
        "tickfont": {"size": 10},
        "gridcolor": _GRID,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
    }


def upright(x: float) -> dict[str, Any]:
    """A thin vertical line through the whole figure."""
    edge = {"color": "rgba(128,128,128,.8)", "width": 1, "dash": "dot"}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": edge}


def line(curve: Curve, x: str) -> dict[str, Any]:
    """A curve as a trace; its hover text gives the place, which is `x`, and the value."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": labels.escape(curve.name),
        "x": list(curve.x),
        "y": list(curve.y),
        "line": {"color": curve.color, "dash": curve.dash, "width": curve.width, "simplify": False},
        "hovertemplate": f"{labels.escape(x)} %{{x:,}}: %{{y:.4g}}",
    }
