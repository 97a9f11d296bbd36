"""All heads of a kind coloured by one statistic."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec

STRONGEST = 0.6
"""Opacity of the largest value; text in its cell stays readable."""
WIDEST_ROLES = 10
"""Most heads per layer for which each cell has room for a role."""
_LEGEND = 34
"""Px for the colour bar under the map of heads."""


@dataclass(frozen=True)
class Cell:
    """The content of a head's cell."""

    value: float | None  # the statistic; None if the head has none
    text: str  # the value as people read it
    role: str  # the head's role in a few letters
    note: str  # the hover text


def head_grid(
    cells: Sequence[Sequence[Cell]],
    kind: str,
    selected: tuple[int, int],
    ink: str | None = None,
    falling: bool = False,
) -> go.Figure:
    """Heads of a kind, coloured by a statistic, one framed.

    A click's `customdata` is (layer, head).
    """
    heads = {
        (layer, head): cell for layer, row in enumerate(cells) for head, cell in enumerate(row)
    }
    y, x = zip(*heads, strict=True)
    targets = plot.targets(x, y, list(heads), [cell.note for cell in heads.values()], 38)
    roomy = len(cells[0]) <= WIDEST_ROLES
    texts = [_text(layer, head, cell, roomy) for (layer, head), cell in heads.items()]
    if ink:
        for text in texts:
            text["font"]["color"] = ink
    layer, head = selected
    edges = head - 0.5, head + 0.5, layer - 0.5, layer + 0.5
    row = 62 if roomy else 40
    layer_names = [f"L{labels.count(i)}" for i in range(len(cells))]
    return plot.figure(
        [_colours(cells, kind, falling), targets],
        plot.named_axis([f"H{labels.count(i)}" for i in range(len(cells[0]))], side="top"),
        plot.named_axis(layer_names, down=True, side="left"),
        34 + row * len(cells) + _LEGEND,
        (30, 28, 4, 4 + _LEGEND),
        shapes=[plot.rectangle(*edges, colour=style.HUES[kind], width=2.5)],
        annotations=texts,
        **plot.CLICKS,
    )


def _colours(cells: Sequence[Sequence[Cell]], kind: str, falling: bool) -> Spec:
    """The statistic of each head as a colour, with a legend if it differs between heads."""
    texts = {cell.value: cell.text for row in cells for cell in row if cell.value is not None}
    low = min(texts, default=0.0)
    high = max(texts, default=1.0)
    values = np.array([[cell.value for cell in row] for row in cells], float)  # None becomes NaN
    shades = style.shades(style.HUES[kind], style.FAINTEST, STRONGEST)
    differs = high > low
    ends = (low, high) if differs else (low, low + 1)
    colours = plot.heat(
        values, ends, shades, xgap=3, ygap=3, reversescale=falling, hoverinfo="skip"
    )
    if texts and differs:
        marks = {value: labels.escape(texts[value]) for value in ends}
        colours |= {"showscale": True, "colorbar": plot.colour_bar(marks, 0.4, air=8)}
    return colours


def _text(layer: int, head: int, cell: Cell, roomy: bool) -> Spec:
    """What stands in a head's cell: the value and, where there is room, the role."""
    value = labels.escape(cell.text)
    if not roomy:
        return plot.note(value, head, layer, 9)
    return plot.note(f"{value}<br>{labels.escape(cell.role)}", head, layer, 11)


def distance_bars(shares: np.ndarray, chance: np.ndarray, kind: str) -> go.Figure:
    """Shares of the weight by query − key, (2 far + 1,) each, over those of even weights."""
    far = len(shares) // 2
    distances = np.arange(-far, far + 1)
    marks = [*range(-far, far + 1, far // 2)]
    signs = {-far: "≤ ", far: "≥ "}  # the last bars hold what lies beyond them
    texts = [f"{signs.get(mark, '')}{labels.number(mark, 'd')}" for mark in marks]
    measured = plot.bars(
        np.asarray(shares, np.float32),
        style.HUES[kind],
        across=False,
        name="this head",
        hovertemplate="query − key %{x}: %{y:.1%}<extra></extra>",
    )
    even = plot.curve(
        "even weights",
        distances,
        np.asarray(chance, np.float32),
        hover="even weights: %{y:.1%}<extra></extra>",
        colour=style.CHOSEN,
    )
    even["line"] = {"color": style.CHOSEN, "shape": "hvh", "width": 1.5}
    title = "query − key, in tokens (above 0: an earlier key)"
    x = plot.number_axis(
        title, standoff=None, showgrid=False, tickvals=marks, ticktext=texts, tickfont=None
    )
    y = plot.number_axis(tickformat=".0%", rangemode="tozero", tickfont=None)
    data = [measured | {"x": distances}, even]
    return plot.figure(data, x, y, 260, (44, 28, 6, 44), bargap=0.15, **plot.legend())


@dataclass(frozen=True, eq=False)
class Marks:
    """Points of one look in a plane."""

    name: str  # as the legend calls them; empty for none
    x: np.ndarray  # (n,)
    y: np.ndarray  # (n,)
    colour: str  # `#RRGGBB`
    notes: Sequence[str]  # the hover text of each
    data: Sequence[object]  # the `customdata` of each
    symbol: str = "circle"
    # (n,) what shades the colour, from the smallest to the largest
    values: np.ndarray | None = None

    def trace(self) -> Spec:
        look: Spec = {"symbol": self.symbol, "size": 8, "color": self.colour}
        if self.values is not None:
            values = np.asarray(self.values, np.float32)
            look |= {"color": values, "colorscale": style.shades(self.colour, 0.2)}
        x = np.asarray(self.x, np.float32)
        y = np.asarray(self.y, np.float32)
        more = plot.noted(self.notes) | plot.SEEN | {"customdata": list(self.data)}
        return plot.points(x, y, name=self.name, showlegend=bool(self.name), marker=look, **more)


def plane(
    marks: Sequence[Marks],
    titles: tuple[str, str],  # of the axes, from left to right and upwards
    chosen: tuple[float, float] | None = None,  # a point with a ring
    texts: Sequence[tuple[float, float, str]] = (),  # words at points
    ends: tuple[str, str] | None = None,  # what the smallest and the largest value of a shade are
) -> go.Figure:
    """Draws points in a plane of one scale; a clicked point has the `customdata` of its mark."""
    data = [mark.trace() for mark in marks]
    if ends:
        _shade(data, marks, ends)
    if chosen is not None:
        ring = {"symbol": "circle-open", "size": 17, "color": style.CHOSEN, "line": {"width": 2.5}}
        data.append(plot.points([chosen[0]], [chosen[1]], marker=ring, showlegend=False))
    x, y = (
        plot.number_axis(labels.escape(title), zeroline=None, zerolinecolor=style.NEUTRAL)
        for title in titles
    )
    layout = dict(plot.CLICKS)
    if any(mark.name for mark in marks):
        layout |= plot.legend()
    bottom = 44
    if ends:
        bottom += _LEGEND
    return plot.figure(
        data,
        x,
        y | {"scaleanchor": "x", "constrain": "domain"},
        430,
        (48, 30, 8, bottom),
        annotations=[plot.note(labels.escape(text), x, y, 10, yshift=9) for x, y, text in texts],
        **layout,
    )


def _shade(traces: Sequence[Spec], marks: Sequence[Marks], ends: tuple[str, str]) -> None:
    """Gives all marks one scale of shades, whose ends mean this, if their values differ."""
    shaded = [mark.values for mark in marks if mark.values is not None and len(mark.values)]
    low = min((float(np.nanmin(values)) for values in shaded), default=0.0)
    high = max((float(np.nanmax(values)) for values in shaded), default=0.0)
    if high <= low:
        return
    for trace in traces:
        trace["marker"] |= {"cmin": low, "cmax": high}
    texts = {low: labels.escape(ends[0]), high: labels.escape(ends[1])}
    bar = plot.colour_bar(texts, 0.4, air=44)
    traces[0]["marker"] |= {"showscale": True, "colorbar": bar}
