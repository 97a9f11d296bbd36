"""All heads of a kind coloured by one statistic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    """Heads of a kind, coloured by a statistic, one framed; a click's `customdata` is (layer,
    head)."""
    n_layers = len(cells)
    n_heads = len(cells[0])
    roomy = n_heads <= WIDEST_ROLES
    hue = style.HUES[kind]
    each = {(layer, head): cell for layer, row in enumerate(cells) for head, cell in enumerate(row)}
    texts = {cell.value: cell.text for cell in each.values() if cell.value is not None}
    low, high = (min(texts), max(texts)) if texts else (0.0, 1.0)
    values = np.array(
        [[np.nan if cell.value is None else cell.value for cell in row] for row in cells]
    )
    shades = style.shades(hue, style.FAINTEST, STRONGEST)
    top = high if high > low else low + 1
    colours = plot.heat(
        values, (low, top), shades, xgap=3, ygap=3, reversescale=falling, hoverinfo="skip"
    )
    if texts and high > low:
        ends = {value: labels.escape(texts[value]) for value in (low, high)}
        colours |= {"showscale": True, "colorbar": plot.colour_bar(ends, 0.4, air=8)}
    y, x = zip(*each, strict=True)
    places = plot.targets(x, y, list(each), [cell.note for cell in each.values()], 38)
    written = [
        plot.note(
            labels.escape(cell.text) + f"<br>{labels.escape(cell.role)}" * roomy,
            head,
            layer,
            11 if roomy else 9,
        )
        for (layer, head), cell in each.items()
    ]
    for text in written if ink else ():
        text["font"]["color"] = ink
    layer, head = selected
    return plot.figure(
        [colours, places],
        plot.named_axis([f"H{labels.count(i)}" for i in range(n_heads)], side="top"),
        plot.named_axis([f"L{labels.count(i)}" for i in range(n_layers)], down=True, side="left"),
        34 + (62 if roomy else 40) * n_layers + _LEGEND,
        (30, 28, 4, 4 + _LEGEND),
        shapes=[plot.rectangle(head - 0.5, head + 0.5, layer - 0.5, layer + 0.5, hue, 2.5)],
        annotations=written,
        **plot.CLICKS,
    )


def distance_bars(shares: np.ndarray, chance: np.ndarray, kind: str) -> go.Figure:
    """Shares of the weight by query − key, (2 far + 1,) each, with what even weights give as a
    line."""
    far = len(shares) // 2
    distances = np.arange(-far, far + 1)
    marks = [*range(-far, far + 1, far // 2)]
    texts = [f"{'≤ ' * (at == -far)}{'≥ ' * (at == far)}{labels.number(at, 'd')}" for at in marks]
    told = "query − key %{x}: %{y:.1%}<extra></extra>"
    measured = plot.bars(
        np.asarray(shares, np.float32),
        style.HUES[kind],
        across=False,
        name="this head",
        hovertemplate=told,
    )
    even = plot.curve(
        "even weights",
        distances,
        np.asarray(chance, np.float32),
        "even weights: %{y:.1%}<extra></extra>",
        style.CHOSEN,
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
    data: Sequence[Any]  # the `customdata` of each
    symbol: str = "circle"
    values: np.ndarray | None = (
        None  # (n,) what shades the colour, from the smallest to the largest
    )

    def trace(self) -> Spec:
        look: Spec = {"symbol": self.symbol, "size": 8, "color": self.colour}
        if self.values is not None:
            values = np.asarray(self.values, np.float32)
            look |= {"color": values, "colorscale": style.shades(self.colour, 0.2)}
        x, y = (np.asarray(each, np.float32) for each in (self.x, self.y))
        more = plot.noted(self.notes) | plot.SEEN | {"customdata": list(self.data)}
        return plot.points(x, y, name=self.name, showlegend=bool(self.name), marker=look, **more)


def plane(
    marks: Sequence[Marks],
    titles: tuple[str, str],  # of the axes, from left to right and upwards
    chosen: tuple[float, float] | None = None,  # a point with a ring
    texts: Sequence[tuple[float, float, str]] = (),  # words at points
    ends: tuple[str, str] | None = None,  # what the smallest and the largest value of a shade are
) -> go.Figure:
    """Draws points in a plane of one scale; a click gives a point whose `customdata` is that of the
    mark."""
    data = [mark.trace() for mark in marks]
    shaded = [each.values for each in marks if each.values is not None and len(each.values)]
    low = min((float(np.nanmin(values)) for values in shaded), default=0.0)
    high = max((float(np.nanmax(values)) for values in shaded), default=0.0)
    if ends and high > low:
        for trace in data:
            trace["marker"] |= {"cmin": low, "cmax": high}
        bar = plot.colour_bar(
            {low: labels.escape(ends[0]), high: labels.escape(ends[1])}, 0.4, air=44
        )
        data[0]["marker"] |= {"showscale": True, "colorbar": bar}
    if chosen is not None:
        ring = {"symbol": "circle-open", "size": 17, "color": style.CHOSEN, "line": {"width": 2.5}}
        data.append(plot.points([chosen[0]], [chosen[1]], marker=ring, showlegend=False))
    x, y = (
        plot.number_axis(labels.escape(title), zeroline=None, zerolinecolor=style.NEUTRAL)
        for title in titles
    )
    return plot.figure(
        data,
        x,
        y | {"scaleanchor": "x", "constrain": "domain"},
        430,
        (48, 30, 8, 44 + _LEGEND * bool(ends)),
        annotations=[plot.note(labels.escape(text), x, y, 10, yshift=9) for x, y, text in texts],
        **plot.CLICKS,
        **(plot.legend() if any(each.name for each in marks) else {}),
    )
