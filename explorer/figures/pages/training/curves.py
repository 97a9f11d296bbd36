"""Quantities of training as lines, and in panels under one another, all against the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from explorer.figures.base import labels, plot
from explorer.figures.base.plot import Spec

_GAP, _TOP, _BOTTOM = 26, 52, 44
FAINT = "rgba(128,128,128,.42)"
"""The colour of raw values behind smoothed ones."""
_CLICKED = {"mode": "lines+markers", "marker": {"opacity": 0, "size": 8}, **plot.UNSEEN}
"""Plotly reports clicks on markers only, so a line that can be clicked has some that nobody sees."""
_DOTS = 40
"""A line of at most so many points shows them as dots."""


@dataclass(frozen=True)
class Curve:
    """One line."""

    name: str  # what the legend calls it
    x: Sequence[float]  # where its values are measured, such as steps
    y: Sequence[float]  # the values
    color: str  # of the line
    dash: str = "solid"  # of the line, as Plotly names it
    width: float = 2  # of the line, in px

    def trace(self, x: str) -> Spec:
        """The hover text gives the place, which is `x`, and the value."""
        told = f"{labels.escape(x)} %{{x:,}}: %{{y:.4g}}"
        look = self.color, self.dash, self.width
        drawn = plot.curve(self.name, list(self.x), list(self.y), told, *look)
        return drawn | {"line": drawn["line"] | {"simplify": False}}


@dataclass(frozen=True)
class Panel:
    """One panel."""

    title: str  # what its vertical axis shows
    lines: Sequence[Curve]  # what is drawn in it
    height: int = 120  # px of its axes
    from_zero: bool = True  # whether the vertical axis begins at zero
    top: float | None = None  # where the vertical axis ends, from zero on; None for what the values need


def curves(lines: Sequence[Curve], titles: tuple[str, str], mark: float | None = None) -> go.Figure:
    """Draws some lines from zero on, with what the axes show; a thin vertical line stands at `mark`."""
    return plot.figure(
        [each.trace(titles[0]) for each in lines],
        plot.number_axis(titles[0], standoff=8, rangemode="tozero", tickformat=",d"),
        plot.number_axis(titles[1], standoff=8, rangemode="tozero", tickformat="~g"),
        340,
        (72, 34, 14, 46),
        shapes=[] if mark is None else [plot.stroke(x=mark)],
        hovermode="closest",
        **plot.legend(),
    )


def panels(
    parts: Sequence[Panel],  # the panels, from the top down
    x: str,  # what the horizontal axis shows
    mark: float | None = None,  # where a thin vertical line stands, which a click moves; None for none
) -> go.Figure:
    """Panels with one horizontal axis; the legend names a line once, and none that is its panel's title."""
    inner = sum(part.height for part in parts) + _GAP * (len(parts) - 1)
    data, axes, above, named = list[Spec](), Spec(), 0, set[str]()
    for number, part in enumerate(parts):
        axis = f"{number + 1 if number else ''}"
        ends = [max(0.0, 1 - (above + part.height) / inner), 1 - above / inner]
        above += part.height + _GAP
        zero: Spec = {"rangemode": "tozero"} if part.from_zero else {"zeroline": True}
        zero |= {} if part.top is None else {"range": [0, part.top]}
        few: Spec = {"nticks": 5, "tickformat": "~g", "zerolinecolor": "rgba(128,128,128,.5)"}
        axes[f"yaxis{axis}"] = plot.number_axis(
            part.title, standoff=8, domain=ends, anchor="x", **zero, **few
        )
        for each in part.lines:
            known = each.name in named | {part.title}
            named.add(each.name)
            trace = each.trace(x) | {"yaxis": f"y{axis}", "customdata": list(each.x), "showlegend": not known}
            if mark is not None:
                trace |= _CLICKED
            elif len(each.x) <= _DOTS:
                trace |= {"mode": "lines+markers", "marker": {"size": 4, "color": each.color}}
            data.append(trace)
    return plot.figure(
        data,
        plot.number_axis(x, standoff=8, anchor=f"y{len(parts) if len(parts) > 1 else ''}", tickformat=",d"),
        axes.pop("yaxis"),
        inner + _TOP + _BOTTOM,
        (72, _TOP, 14, _BOTTOM),
        **axes,
        hovermode="closest",
        **({} if mark is None else {"shapes": [plot.stroke(x=mark)], "clickmode": plot.CLICKS["clickmode"]}),
        **plot.legend(),
    )
