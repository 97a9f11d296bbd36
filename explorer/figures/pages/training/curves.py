"""Quantities of training as lines, and in panels under one another, all against the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from explorer.figures.base import labels, style

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


_GAP, _TOP, _BOTTOM = 26, 52, 44
FAINT = "rgba(128,128,128,.42)"
"""The colour of raw values behind smoothed ones."""


@dataclass(frozen=True)
class Panel:
    """One panel."""

    title: str  # what its vertical axis shows
    lines: Sequence[Curve]  # what is drawn in it
    height: int = 120  # px of its axes
    from_zero: bool = True  # whether the vertical axis begins at zero
    top: float | None = None  # where the vertical axis ends, from zero on; None for what the values need


def panels(
    parts: Sequence[Panel],  # the panels, from the top down
    x: str,  # what the horizontal axis shows
    mark: float | None = None,  # where a thin vertical line stands, which a click moves; None for none
) -> go.Figure:
    """Draws panels with one horizontal axis.

    A legend names the lines: each name once, and none that is already the title of its panel.
    """
    inner = sum(part.height for part in parts) + _GAP * (len(parts) - 1)
    layout: dict[str, Any] = {
        "height": inner + _TOP + _BOTTOM,
        "margin": {"l": 72, "r": 14, "t": _TOP, "b": _BOTTOM},
        "xaxis": titled_axis(x) | {"anchor": _axis(len(parts) - 1), "tickformat": ",d"},
        "dragmode": False,
        "hovermode": "closest",
        **({} if mark is None else {"shapes": [upright(mark)], "clickmode": "event+select"}),
        **style.LEGEND,
    }
    data, above, named = list[dict[str, Any]](), 0, set[str]()
    for number, part in enumerate(parts):
        ends = [1 - (above + part.height) / inner, 1 - above / inner]
        above += part.height + _GAP
        span = {"domain": [max(0.0, ends[0]), ends[1]], "anchor": "x"}
        zero: dict[str, Any] = {"rangemode": "tozero"} if part.from_zero else {"zeroline": True}
        zero |= {} if part.top is None else {"range": [0, part.top]}
        layout[f"yaxis{number + 1 if number else ''}"] = titled_axis(part.title) | zero | span | _FEW
        for each in part.lines:
            known = each.name in named | {part.title}
            named.add(each.name)
            clicked = {} if mark is None else _CLICKED
            data.append(_line(each, x, _axis(number)) | clicked | {"showlegend": not known})
    return style.figure(style.spec(data, layout))


_UNSEEN = {"marker": {"opacity": 0}}
_CLICKED = {
    "mode": "lines+markers",
    "marker": {"opacity": 0, "size": 8},
    "selected": _UNSEEN,
    "unselected": _UNSEEN,
}
"""Plotly reports clicks on markers only, so a line that can be clicked has some that nobody sees."""
_FEW = {"nticks": 5, "tickformat": "~g", "zerolinecolor": "rgba(128,128,128,.5)"}


def _axis(number: int) -> str:
    return f"y{number + 1}" if number else "y"


def _line(curve: Curve, x: str, axis: str) -> dict[str, Any]:
    marks = {"mode": "lines+markers", "marker": {"size": 4, "color": curve.color}}
    dots = marks if len(curve.x) <= _DOTS else {}
    return line(curve, x) | dots | {"yaxis": axis, "customdata": list(curve.x)}


_DOTS = 40
"""A line of at most so many points shows them as dots."""
