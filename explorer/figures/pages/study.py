"""Charts of a study: curves, dots with intervals, bars and grids, drawn from their rows alone."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.captions import KIND_NAMES
from explorer.figures.base.plot import Spec

Row = Sequence[str | float | None]
Series = Sequence[tuple[str, list[Row], tuple[str, str, str]]]
"""Name, the rows with a value, and colour, line and mark of each series."""
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
"""Colour, line and mark of the series in turn: no hue of a kind of attention, distinct without
colour."""
KINDS = {name.lower(): kind for kind, name in KIND_NAMES.items()}
"""Series that are a kind of attention have its hue."""
_RISING = style.shades(style.POSITIVE, 0.03, 0.7)
_SIGNED = [
    *((0.5 * at, style.rgba(style.NEGATIVE, 0.7 * (1 - at))) for at in (0, 1)),
    *((0.5 + 0.5 * at, style.rgba(style.POSITIVE, 0.7 * at)) for at in (0, 1)),
]
"""Scales of a map, on which numbers can be read in both themes."""
_MOST_MARKS = 40
_MOST_COUNTED = 8
_ROW, _GROUP = 26, 18


@dataclass(frozen=True)
class Chart:
    """Rows of numbers, and how they are drawn."""

    # `curves` over numbers; `dots` and `bars`, a row for each place, or side by side in groups;
    # `grid`, a map of series (down) by places (across); `table`, with any columns
    kind: Literal["curves", "dots", "bars", "grid", "table"]
    caption: str  # what it shows
    alt: str  # what one sees, for people who do not see it
    # names of the columns: series, place, value, and perhaps the low and the high end of an
    # interval
    columns: Sequence[str]
    rows: Sequence[Row]
    log: Literal["", "x", "y", "xy"] = ""  # which axes are logarithmic
    unit: str = ""  # written after a value

    def __post_init__(self) -> None:
        lengths = {len(self.columns), *map(len, self.rows)}
        if len(lengths) > 1 or (self.kind != "table" and len(self.columns) < 3):
            raise ValueError(
                "A chart has columns of series, place and value, and rows of as many cells."
            )


def draw(chart: Chart, among: Sequence[str] = (), ink: str = "#1d232c") -> go.Figure:
    """The figure of a chart of any kind but a table.

    Its series look as they do `among` those named.
    """
    series: dict[str, list[Row]] = {}
    for row in chart.rows:
        if row[2] is not None:
            series.setdefault(str(row[0]), []).append(row)
    places = {name: place for place, name in enumerate(among or series)}
    looks = {name: LOOKS[places[name] % len(LOOKS)] for name in series}
    looks |= {name: (style.HUES[KINDS[name]], *looks[name][1:]) for name in looks if name in KINDS}
    figure = _DRAWN[chart.kind](chart, [(name, rows, looks[name]) for name, rows in series.items()])
    return figure.update_traces(textfont={"color": ink}, selector={"type": "heatmap"})


def _curves(chart: Chart, series: Series) -> go.Figure:
    data = []
    for name, rows, (colour, dash, symbol) in series:
        curve = plot.curve(
            name,
            [row[1] for row in rows],
            [row[2] for row in rows],
            hover=f"%{{x:,.6~g}}: %{{y:.4~g}}{chart.unit}%{{customdata}}",
            colour=colour,
            dash=dash,
            width=1.8,
            mode="lines+markers" if len(rows) <= _MOST_MARKS else "lines",
            marker={"color": colour, "symbol": symbol, "size": 6},
            customdata=[_ends(row) for row in rows],
        )
        if len(chart.columns) > 3:
            curve["error_y"] = _error(rows)
        data.append(curve)
    x, y = (_axis(chart.columns[i], axis in chart.log) for i, axis in enumerate("xy", start=1))
    places = sorted({float(row[1] or 0.0) for row in chart.rows})
    if (
        "x" not in chart.log
        and len(places) <= _MOST_COUNTED
        and all(place.is_integer() for place in places)
    ):
        x["tickvals"] = places  # a few whole numbers, such as layers
    return _figure(data, x | {"zeroline": False}, y, 320, len(data))


def _by_place(chart: Chart, series: Series) -> go.Figure:
    """A row for each place, the series of a place under one another.

    Each value stands behind its interval.
    """
    data = list[Spec]()
    places = list(dict.fromkeys(str(row[1]) for row in chart.rows))
    for i, (name, rows, (colour, _, symbol)) in enumerate(series):
        aside = (i - (len(series) - 1) / 2) * 0.76 / len(series)
        y = [places.index(str(row[1])) + aside for row in rows]
        x = [row[2] for row in rows]
        more = _hover(chart, name, rows)
        if chart.kind == "bars":
            marks = plot.bars(x, colour, y=y, width=0.7 / len(series), **more)
        else:
            marker = {"color": colour, "symbol": symbol, "size": 9}
            marks = plot.points(x, y, marker=marker, **more)
        data += [marks, _values(chart, rows, y)]
    height = len(places) * max(_ROW, _GROUP * len(series))
    return _figure(data, _value_axis(chart), _names(places, down=True), 60 + height, len(series))


def _hover(chart: Chart, name: str, rows: Sequence[Row]) -> Spec:
    """Name and hover texts of a series, and its intervals where the chart has them."""
    texts = [f"{_value(chart, row)}{_ends(row)}" for row in rows]
    more: Spec = {
        "name": labels.escape(name),
        "hovertemplate": f"{labels.escape(name)} %{{customdata}}<extra></extra>",
        "customdata": texts,
    }
    if len(chart.columns) > 3:
        more["error_x"] = _error(rows)
        if chart.kind == "bars":
            more["error_x"]["color"] = "#808080"
    return more


def _value(chart: Chart, row: Row) -> str:
    """The value of a row with its unit."""
    return f"{number(row[2], _digits(chart))}{chart.unit}"


def _values(chart: Chart, rows: Sequence[Row], y: Sequence[float]) -> Spec:
    """The values as texts, beyond the ends of their intervals and, beside bars, of their bars."""
    ends = [max(float(end or 0.0) for end in (row[2], *row[4:5])) for row in rows]
    if chart.kind == "bars":
        ends = [max(end, 0.0) for end in ends]
    texts = [f"\u2003{_value(chart, row)}" for row in rows]
    look = plot.BESIDE | {"textfont": {"size": 12}}
    return plot.points(ends, y, "text", text=texts, showlegend=False, **look)


def _value_axis(chart: Chart) -> Spec:
    """The axis of the values, with room for what is written at them."""
    values = [float(value) for row in chart.rows for value in row[2:5] if value is not None]
    low = min(0.0, *values)
    high = max(0.0, *values)
    ends = [low - 0.03 * (high - low), high + 0.2 * (high - low)]
    return _axis(chart.columns[2]) | {"range": ends}


def _grid(chart: Chart, _: Series) -> go.Figure:
    down, across = (list(dict.fromkeys(str(row[i]) for row in chart.rows)) for i in (0, 1))
    cells = {(row[0], row[1]): row[2] for row in chart.rows}
    values = [[cells.get((row, column)) for column in across] for row in down]
    known = [float(value) for row in values for value in row if value is not None]
    most = max(map(abs, known), default=1.0) or 1.0
    ends = (0.0, most)
    shades = _RISING
    if min(known, default=0.0) < 0:
        ends = (-most, most)
        shades = _SIGNED
    data = plot.heat(np.array(values, float), ends, shades, xgap=2, ygap=2) | {
        "z": values,
        "x": list(range(len(across))),
        "y": list(range(len(down))),
        "text": [[number(value, _digits(chart)) for value in row] for row in values],
        "texttemplate": "%{text}",
        "textfont": {"size": 12},
        "hovertemplate": f"%{{customdata}}: %{{text}}{chart.unit}<extra></extra>",
        "customdata": [[labels.escape(f"{row}, {column}") for column in across] for row in down],
    }
    x = _axis(chart.columns[1]) | _names(across, 16) | {"side": "bottom", "tickangle": 0}
    return _figure([data], x, _names(down, down=True), 70 + 34 * len(down), 1)


_DRAWN: dict[str, Callable[[Chart, Series], go.Figure]] = {
    "curves": _curves,
    "dots": _by_place,
    "bars": _by_place,
    "grid": _grid,
}


def number(value: object, digits: int = 3) -> str:
    """A number with at most so many digits after the point; empty for None. Only a zero is "0"."""
    if not isinstance(value, int | float):
        return ""
    if not value:
        return "0"
    if isinstance(value, int):
        return labels.number(value, ",d")
    return labels.number(value, f",.{digits}f")


def _digits(chart: Chart) -> int:
    """Digits after the point that three figures of the largest value of a chart need."""
    most = max((abs(float(row[2])) for row in chart.rows if row[2] is not None), default=1.0)
    if not most:
        return 0
    return max(0, min(3, 2 - math.floor(math.log10(most))))


def _ends(row: Row) -> str:
    """The interval of a row in words; empty without one."""
    if len(row) <= 4 or row[3] is None:
        return ""
    return f" ({number(row[3])} to {number(row[4])})"


def _error(rows: Sequence[Row]) -> Spec:
    """The intervals of rows."""
    return plot.error([_distance(row, 3) for row in rows], [_distance(row, 4) for row in rows])


def _distance(row: Row, end: int) -> float:
    """How far an end of its interval is from the value of a row; 0 without one."""
    if row[end] is None:
        return 0.0
    return abs(float(row[end] or 0.0) - float(row[2] or 0.0))


def _axis(title: str, log: bool = False) -> Spec:
    """An axis of numbers, in powers if it is logarithmic."""
    axis = plot.number_axis() | {
        "title": {"text": labels.escape(title), "font": {"size": 12}, "standoff": 8},
        "tickfont": {"size": 12},
        "separatethousands": True,
        "exponentformat": "none",
        "type": "linear",
        "zeroline": not log,
        "zerolinecolor": style.NEUTRAL,
        "zerolinewidth": 1,
        "automargin": True,
    }
    if log:
        axis |= {"exponentformat": "power", "type": "log"}
    return axis


def _names(texts: Sequence[str], width: int = 99, down: bool = False) -> Spec:
    """What makes an axis one of names, in lines of so many letters; `down`, the whole axis."""
    names = [
        "<br>".join(map(labels.escape, wrap(text, width, break_on_hyphens=False))) for text in texts
    ]
    ticks = {
        "tickvals": list(range(len(texts))),
        "ticktext": names,
        "showgrid": False,
        "zeroline": False,
    }
    if not down:
        return ticks
    return _axis("") | ticks | {"range": [len(texts) - 0.5, -0.5]}


def _figure(data: list[Spec], x: Spec, y: Spec, height: int, series: int) -> go.Figure:
    """The figure; a legend stands above it if there are several series."""
    layout: Spec = {"hovermode": "closest"}
    top = 10
    if series > 1:
        top = 12 + 21 * (1 + (series - 1) // 4)
        layout |= plot.legend()
    return plot.figure(data, x, y, height + top, (10, top, 16, 10), **layout)
