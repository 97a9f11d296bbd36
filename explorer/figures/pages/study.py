"""Charts of a study: curves, dots with intervals, bars and grids, drawn from their rows alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from textwrap import wrap
from typing import Any, Protocol

import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.captions import KIND_NAMES

Row = Sequence[str | float | None]
Spec = dict[str, Any]
LOOKS = (
    ("#E69F00", "solid", "circle"),
    ("#56B4E9", "solid", "diamond"),
    ("#CC79A7", "solid", "square"),
    ("#999999", "dot", "x"),
    ("#E69F00", "dash", "circle-open"),
    ("#56B4E9", "dash", "diamond-open"),
    ("#CC79A7", "dash", "square-open"),
    ("#999999", "solid", "star"),
)
"""Colour, line and mark of the series in turn: no hue of a kind of attention, distinct without colour."""
KINDS = {name.lower(): kind for kind, name in KIND_NAMES.items()}
"""Series that are a kind of attention have its hue."""
_GRID = "rgba(128,128,128,.22)"
_RISING = [style.rgba(style.POSITIVE, 0.03), style.rgba(style.POSITIVE, 0.7)]
_SIGNED = [
    *((0.5 * at, style.rgba(style.NEGATIVE, 0.7 * (1 - at))) for at in (0, 1)),
    *((0.5 + 0.5 * at, style.rgba(style.POSITIVE, 0.7 * at)) for at in (0, 1)),
]
"""Scales of a map, on which numbers can be read in both themes."""
_ZERO = "rgba(128,128,128,.55)"
_MOST_MARKS = 40
_MOST_POWERS, _FEW_POWERS, _MOST_COUNTED = 7, 2.2, 12
_ROW, _GROUP = 26, 18


class ChartLike(Protocol):
    """A chart, as `explorer.app.server.studies.Chart` describes it."""

    @property
    def kind(self) -> str: ...
    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def rows(self) -> Sequence[Row]: ...
    @property
    def log(self) -> str: ...
    @property
    def unit(self) -> str: ...


def draw(
    chart: ChartLike,
    among: Sequence[
        str
    ] = (),  # series in the order of their looks, those of a chart with more of them; its own if empty
    ink: str = "#1d232c",  # colour of numbers in coloured cells
) -> go.Figure:
    """The figure of a chart of any kind but a table."""
    figure = _DRAWN[chart.kind](chart, among or list(_series(chart)))
    return figure.update_traces(textfont={"color": ink}, selector={"type": "heatmap"})


def _curves(chart: ChartLike, among: Sequence[str]) -> go.Figure:
    data = []
    for (name, rows), (colour, dash, symbol) in zip(
        _series(chart).items(), _looks(chart, among), strict=True
    ):
        few = len(rows) <= _MOST_MARKS
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if few else "lines",
                "name": labels.escape(name),
                "x": [row[1] for row in rows],
                "y": [row[2] for row in rows],
                "line": {"color": colour, "dash": dash, "width": 1.8},
                "marker": {"color": colour, "symbol": symbol, "size": 6},
                "hovertemplate": f"%{{x:,.6~g}}: %{{y:.4~g}}{chart.unit}%{{customdata}}",
                "customdata": [_ends(row) for row in rows],
                **({"error_y": _error(rows)} if len(chart.columns) > 3 else {}),
            }
        )
    x, y = (
        _axis(
            chart.columns[i],
            [float(row[i] or 0.0) for row in chart.rows if row[2] is not None],
            axis in chart.log,
        )
        for i, axis in enumerate("xy", start=1)
    )
    return _figure(data, x | {"zeroline": False}, y, 320, len(data))


def _dots(chart: ChartLike, among: Sequence[str]) -> go.Figure:
    return _by_place(
        chart,
        among,
        lambda symbol, _: {"type": "scatter", "mode": "markers", "marker": {"symbol": symbol, "size": 9}},
    )


def _bars(chart: ChartLike, among: Sequence[str]) -> go.Figure:
    return _by_place(
        chart,
        among,
        lambda _, series: {"type": "bar", "orientation": "h", "width": 0.7 / series, "marker": {}},
    )


def _by_place(chart: ChartLike, among: Sequence[str], trace: Callable[[str, int], Spec]) -> go.Figure:
    """A row for each place, the series of a place under one another; each value stands behind its "
    "interval."""
    series, data = _series(chart), []
    grey = {"color": "#808080"} if chart.kind == "bars" else {}
    base = [0.0] if chart.kind == "bars" else []  # what is written stands beyond a bar to the left, too
    places = list(dict.fromkeys(str(row[1]) for row in chart.rows))
    for i, ((name, rows), (colour, _, symbol)) in enumerate(
        zip(series.items(), _looks(chart, among), strict=True)
    ):
        own, aside = trace(symbol, len(series)), (i - (len(series) - 1) / 2) * 0.76 / len(series)
        y = [places.index(str(row[1])) + aside for row in rows]
        written = [f"{number(row[2], _digits(chart))}{chart.unit}" for row in rows]
        data.append(
            own
            | {
                "name": labels.escape(name),
                "x": [row[2] for row in rows],
                "y": y,
                "marker": {"color": colour, **own["marker"]},
                "hovertemplate": f"{labels.escape(name)} %{{customdata}}<extra></extra>",
                "customdata": [f"{text}{_ends(row)}" for text, row in zip(written, rows, strict=True)],
                **({"error_x": _error(rows) | grey} if len(chart.columns) > 3 else {}),
            }
        )
        data.append(
            {
                "type": "scatter",
                "mode": "text",
                "x": [max(float(each or 0.0) for each in (row[2], *row[4:5], *base)) for row in rows],
                "y": y,
                "text": [f"\u2003{text}" for text in written],
                "textposition": "middle right",
                "textfont": {"size": 12},
                "cliponaxis": False,
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
    ticks = {"tickvals": list(range(len(places))), "ticktext": [labels.escape(each) for each in places]}
    y_axis = _axis("") | ticks | {"range": [len(places) - 0.5, -0.5], "showgrid": False, "zeroline": False}
    x = _axis(chart.columns[2]) | {"range": _reach(chart)}
    height = len(places) * max(_ROW, _GROUP * len(series))
    return _figure(data, x, y_axis, 60 + height, len(series))


def _reach(chart: ChartLike) -> list[float]:
    """Ends of the axis of values: from zero to the last interval, with room for what is written there."""
    values = [float(each) for row in chart.rows for each in row[2:5] if each is not None]
    low, high = min(0.0, *values), max(0.0, *values)
    return [low - 0.03 * (high - low), high + 0.2 * (high - low)]


def _grid(chart: ChartLike, _: Sequence[str]) -> go.Figure:
    down, across = (list(dict.fromkeys(str(row[i]) for row in chart.rows)) for i in (0, 1))
    cells = {(row[0], row[1]): row[2] for row in chart.rows}
    values = [[cells.get((row, column)) for column in across] for row in down]
    most = max((abs(float(each)) for row in values for each in row if each is not None), default=1.0) or 1.0
    signed = any(float(each) < 0 for row in values for each in row if each is not None)
    data = {
        "type": "heatmap",
        "z": values,
        "x": list(range(len(across))),
        "y": list(range(len(down))),
        "zmin": -most if signed else 0,
        "zmax": most,
        "colorscale": _SIGNED if signed else _RISING,
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "text": [[number(each, _digits(chart)) for each in row] for row in values],
        "texttemplate": "%{text}",
        "textfont": {"size": 12},
        "hovertemplate": f"%{{customdata}}: %{{text}}{chart.unit}<extra></extra>",
        "customdata": [[labels.escape(f"{row}, {column}") for column in across] for row in down],
    }
    x = _axis(chart.columns[1]) | _names(across, 16) | {"side": "bottom", "tickangle": 0, "zeroline": False}
    y = _axis("") | _names(down) | {"range": [len(down) - 0.5, -0.5], "zeroline": False}
    return _figure([data], x, y, 70 + 34 * len(down), 1)


_DRAWN: dict[str, Callable[[ChartLike, Sequence[str]], go.Figure]] = {
    "curves": _curves,
    "dots": _dots,
    "bars": _bars,
    "grid": _grid,
}


def _series(chart: ChartLike) -> dict[str, list[Row]]:
    """The rows with a value, by the name of their series."""
    found: dict[str, list[Row]] = {}
    for row in chart.rows:
        if row[2] is not None:
            found.setdefault(str(row[0]), []).append(row)
    return found


def _looks(chart: ChartLike, among: Sequence[str]) -> list[tuple[str, str, str]]:
    places = ((name, among.index(name) % len(LOOKS)) for name in _series(chart))
    return [(style.HUES[KINDS[name]], *LOOKS[i][1:]) if name in KINDS else LOOKS[i] for name, i in places]


def number(value: object, digits: int = 3) -> str:
    """A number with at most so many digits after the point; empty for None. Only a zero is "0"."""
    if not isinstance(value, int | float):
        return ""
    return labels.number(value, ",d" if isinstance(value, int) else f",.{digits}f") if value else "0"


def _digits(chart: ChartLike) -> int:
    """Digits after the point that three figures of the largest value of a chart need."""
    most = max((abs(float(row[2])) for row in chart.rows if row[2] is not None), default=1.0)
    return max(0, min(3, 2 - math.floor(math.log10(most)))) if most else 0


def _ends(row: Row) -> str:
    return f" ({number(row[3])} to {number(row[4])})" if len(row) > 4 and row[3] is not None else ""


def _error(rows: Sequence[Row]) -> Spec:
    def beyond(row: Row, end: int) -> float:
        return abs(float(row[end] or 0.0) - float(row[2] or 0.0)) if row[end] is not None else 0.0

    ends = {"array": [beyond(row, 4) for row in rows], "arrayminus": [beyond(row, 3) for row in rows]}
    return {"type": "data", "symmetric": False, "thickness": 1.2, "width": 3, **ends}


def _axis(title: str, values: Sequence[float] = (), log: bool = False) -> Spec:
    return {
        "title": {"text": labels.escape(title), "font": {"size": 12}, "standoff": 8},
        "tickfont": {"size": 12},
        "separatethousands": True,
        "exponentformat": "none",
        "gridcolor": _GRID,
        "zeroline": not log,
        "zerolinecolor": _ZERO,
        "zerolinewidth": 1,
        "fixedrange": True,
        "automargin": True,
        **(_powers(values) if log else _counted(values)),
    }


def _powers(values: Sequence[float]) -> Spec:
    """A logarithmic axis: powers of ten in one size of type, with twos and fives between a few of them."""
    known = [math.log10(each) for each in values if each > 0] or [0.0]
    low, high = math.floor(min(known)), math.ceil(max(known))
    step = max(1, math.ceil((high - low) / _MOST_POWERS))
    between = (1, 2, 5) if max(known) - min(known) <= _FEW_POWERS else (1,)
    marks = [(each, power) for power in range(low, high + 1, step) for each in between]
    texts = [
        f"{each * 10.0**power:,g}" if -4 < power < 6 else f"10{labels.raised(power)}" for each, power in marks
    ]
    return {"type": "log", "tickvals": [each * 10.0**power for each, power in marks], "ticktext": texts}


def _counted(values: Sequence[float]) -> Spec:
    """The ticks of an axis of a few whole numbers, such as layers: those numbers, if they have room."""
    known = sorted(set(values))
    if not 1 < len(known) <= _MOST_COUNTED or any(each % 1 for each in known):
        return {}
    nearest = min(after - before for before, after in pairwise(known))
    return {"tickvals": known} if nearest * _MOST_COUNTED >= known[-1] - known[0] else {}


def _names(texts: Sequence[str], width: int = 99) -> Spec:
    shown = ["<br>".join(map(labels.escape, wrap(each, width, break_on_hyphens=False))) for each in texts]
    return {"tickvals": list(range(len(texts))), "ticktext": shown, "showgrid": False}


def _figure(data: list[Spec], x: Spec, y: Spec, height: int, series: int) -> go.Figure:
    """The figure; a legend stands above it if there are several series."""
    top = 12 + 21 * (1 + (series - 1) // 4) if series > 1 else 10
    layout = {"xaxis": x, "yaxis": y, "height": height + top, "dragmode": False, "hovermode": "closest"}
    margin = {"l": 10, "r": 16, "t": top, "b": 10}
    legend = style.LEGEND if series > 1 else {}
    return style.figure(style.spec(data, layout | {"margin": margin} | legend))
