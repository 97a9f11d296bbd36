"""Positional encodings and their effect: tables, curves, biases, and results with intervals."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style

LOOKS = {
    "none": ("#999999", "dot"),
    "sinusoidal": ("#E69F00", "solid"),
    "learned": ("#E69F00", "dash"),
    "shaw": ("#CC79A7", "solid"),
    "t5": ("#CC79A7", "dash"),
    "rotary": ("#56B4E9", "solid"),
    "alibi": ("#56B4E9", "dash"),
    "postnorm": ("#999999", "solid"),
}
"""Colour and line of each twin: no attention kind's hue, and no two alike."""
_SPARE = tuple(
    (colour, line)
    for line in ("dashdot", "longdash", "longdashdot")
    for colour in ("#999999", "#E69F00", "#56B4E9", "#CC79A7")
)
"""Looks of twins that have none of their own, such as that of a new encoding."""
Values = Sequence[float] | np.ndarray
_LEFT = 66
_EDGES = (12, 42)
"""Px on the left: room for a tick label and, beside it, the title of the axis.

On the right, and below.
"""


def looks(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and line of each twin, whatever its seed; one without a look takes a spare one."""
    encodings = {name: name.partition("-seed")[0] for name in names}
    spare = itertools.cycle(_SPARE)
    looks = {
        encoding: LOOKS.get(encoding) or next(spare)
        for encoding in dict.fromkeys(encodings.values())
    }
    return {name: looks[encoding] for name, encoding in encodings.items()}


@dataclass(frozen=True)
class Interval:
    """A measured value with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def table_map(
    table: np.ndarray,  # (rows, columns)
    first: int,  # number of the first row; the other rows count on from it
    down: str,  # what the rows stand for
    across: str,  # what the columns stand for
    # least height in px; each row gets at least 1 px, since a browser would drop thinner rows
    height: int = 360,
    left: int = 1,  # number of the first column; the other columns count on from it
    most: float = 0,  # magnitude at the ends of the colours; 0 for the largest of the table
) -> go.Figure:
    """A table of signed numbers, every cell drawn: rows are positions, columns dimensions."""
    most = most or max(float(np.abs(table).max()), 1e-9)
    bar = {"thickness": 8, "outlinewidth": 0, "tickfont": {"size": 9}, "xpad": 4}
    hover = f"{down} %{{y}}, {across} %{{x}}: %{{z:.3f}}<extra></extra>"
    cells = plot.heat(
        table, (-most, most), style.DIVERGING, x0=left, dx=1, y0=first, dy=1, hovertemplate=hover
    )
    x = plot.number_axis(across, showgrid=False, range=[left - 0.5, left + table.shape[1] - 0.5])
    y = plot.number_axis(down, showgrid=False, range=[first + len(table) - 0.5, first - 0.5])
    data = [cells | {"showscale": True, "colorbar": bar}]
    return plot.figure(data, x, y, max(height, 50 + len(table)), (_LEFT, 8, *_EDGES))


def lines(
    x: Values,
    series: Mapping[str, Values],
    titles: tuple[str, str],
    # what the twin is called of which a curve is; None if of none
    twin: Callable[[str], str] | None = None,
    height: int = 280,
    # px for the legend; None for one line of it, if there are several curves
    top: int | None = None,
) -> go.Figure:
    """Several curves over the same places; a click in the legend isolates one curve."""
    if twin is None:
        names = {name: name for name in series}
        curve_looks = dict(zip(series, itertools.cycle(style.SERIES), strict=False))
    else:
        names = {name: twin(name) for name in series}
        curve_looks = looks(series)
    places = np.asarray(x, np.float32)
    data = []
    for name, values in series.items():
        heights = np.asarray(values, np.float32)
        curve = plot.curve(names[name], places, heights, "%{x:g}: %{y:.3f}", *curve_looks[name])
        data.append(curve)
    several = len(series) > 1
    legend = plot.legend(10, top=False, itemclick="toggleothers") | {"showlegend": several}
    around = _LEFT, top or (30 if several else 8), *_EDGES
    x_axis, y_axis = map(plot.number_axis, titles)
    return plot.figure(data, x_axis, y_axis, height, around, hovermode="closest", **legend)


def dots(
    values: Mapping[str, Interval], title: str, named: Callable[[str], str], digits: int = 1
) -> go.Figure:
    """One dot with its interval for each twin, one below the other, with the value beside it."""
    cells = list(values.values())
    places = list(range(len(values)))
    hues = {name: colour for name, (colour, _) in looks(values).items()}
    filled = ["rgba(0,0,0,0)" if "-seed" in name else colour for name, colour in hues.items()]
    beyond = plot.error([c.value - c.low for c in cells], [c.high - c.value for c in cells])
    dot = plot.points(
        [cell.value for cell in cells],
        places,
        error_x=beyond | {"color": "rgba(128,128,128,.8)"},
        marker={"size": 9, "color": filled, "line": {"width": 2, "color": list(hues.values())}},
        hovertemplate=f"%{{x:.{digits}f}} (%{{customdata}})<extra></extra>",
        customdata=[f"95 %: {cell.low:.{digits}f} to {cell.high:.{digits}f}" for cell in cells],
    )
    texts = [f"\u2003{cell.value:.{digits}f}" for cell in cells]
    written = plot.points([cell.high for cell in cells], places, "text", text=texts, **plot.BESIDE)
    high = max(cell.high for cell in cells)
    low = min(0.0, *(cell.low for cell in cells))
    names = [labels.escape(named(name)) for name in values]
    y = plot.number_axis(
        tickvals=places, ticktext=names, range=[len(places) - 0.5, -0.5], showgrid=False
    )
    x = plot.number_axis(title, range=[low - 0.02 * (high - low), high + 0.16 * (high - low)])
    return plot.figure([dot, written], x, y, 62 + 26 * len(places), (122, 6, 12, 42))
