"""All heads of a kind coloured by one statistic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.cells import axis, colour_bar, hover, targets

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
    cells: Sequence[Sequence[Cell]],  # by layer and head
    kind: str,  # encoder, decoder or cross
    selected: tuple[int, int],  # layer and head to frame, from 0
    ink: str | None = None,  # colour of the text in the cells; None for the figure's text colour
    falling: bool = False,  # whether the smallest value has the strongest colour
) -> go.Figure:
    """Draws the heads of a kind (rows are layers, columns are heads) and frames the selected head.

    Colours run from the smallest value to the largest, which the bar under the map names. A click on a cell
    gives a point whose `customdata` is (layer, head), from 0.
    """
    n_layers, n_heads = len(cells), len(cells[0])
    rows = 62 if n_heads <= WIDEST_ROLES else 40
    places = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    layer, head = selected
    layout = {
        "xaxis": axis([f"H{labels.count(i)}" for i in range(n_heads)], "top", 11),
        "yaxis": axis([f"L{labels.count(i)}" for i in range(n_layers)], "left", 11),
        "shapes": [
            {"type": "rect", "x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
            | {"line": {"color": style.HUES[kind], "width": 2.5}}
        ],
        "annotations": [_text(cells[i][j], (i, j), n_heads, ink) for i, j in places],
        "height": 34 + rows * n_layers + _LEGEND,
        "margin": {"l": 30, "t": 28, "r": 4, "b": 4 + _LEGEND},
        "dragmode": False,
        "clickmode": "event+select",
        "hovermode": "closest",
    }
    return style.figure(style.spec([_colours(cells, kind, falling), _targets(cells, places)], layout))


def _colours(cells: Sequence[Sequence[Cell]], kind: str, falling: bool) -> dict[str, Any]:
    values = np.array(
        [[np.nan if each.value is None else each.value for each in row] for row in cells], np.float32
    )
    hue = style.HUES[kind]
    low, high = (float(np.nanmin(values)), float(np.nanmax(values))) if not np.isnan(values).all() else (0, 1)
    found = {
        "type": "heatmap",
        "z": values,
        "zmin": low,
        "zmax": high if high > low else low + 1,
        "xgap": 3,
        "ygap": 3,
        "colorscale": [(0.0, style.rgba(hue, style.FAINTEST)), (1.0, style.rgba(hue, STRONGEST))],
        "reversescale": falling,
        "showscale": False,
        "hoverinfo": "skip",
    }
    return found | (_scale(cells, low, high) if high > low else {})


def _scale(cells: Sequence[Sequence[Cell]], low: float, high: float) -> dict[str, Any]:
    """A colour bar under the map, with the texts of the smallest and the largest value."""
    texts = {each.value: each.text for row in cells for each in row if each.value is not None}
    ticks = {low: labels.escape(texts[min(texts)]), high: labels.escape(texts[max(texts)])}
    return {"showscale": True, "colorbar": colour_bar(ticks, 0.4) | {"ypad": 8}}


def _targets(cells: Sequence[Sequence[Cell]], places: Sequence[tuple[int, int]]) -> dict[str, Any]:
    return targets(
        [head for _, head in places],
        [layer for layer, _ in places],
        list(places),
        [hover(cells[i][j].note) for i, j in places],
        38,
    )


def _text(cell: Cell, place: tuple[int, int], n_heads: int, ink: str | None) -> dict[str, Any]:
    roomy = n_heads <= WIDEST_ROLES
    role = f"<br>{labels.escape(cell.role)}" if roomy else ""
    font = {"size": 11 if roomy else 9} | ({} if ink is None else {"color": ink})
    text = f"{labels.escape(cell.text)}{role}"
    return {"x": place[1], "y": place[0], "text": text, "showarrow": False, "font": font}


_GRID = "rgba(128,128,128,.25)"


def distance_bars(shares: np.ndarray, chance: np.ndarray, kind: str) -> go.Figure:
    """Shares of the weight by query − key, (2 far + 1,) each, with what even weights give as a line."""
    far = len(shares) // 2
    distances = np.arange(-far, far + 1)
    marks = [*range(-far, far + 1, far // 2)]
    texts = [f"{'≤ ' * (at == -far)}{'≥ ' * (at == far)}{labels.number(at, 'd')}" for at in marks]
    bars = {
        "type": "bar",
        "name": "this head",
        "x": distances,
        "y": np.asarray(shares, np.float32),
        "marker": {"color": style.HUES[kind]},
        "hovertemplate": "query − key %{x}: %{y:.1%}<extra></extra>",
    }
    even = {
        "type": "scatter",
        "name": "even weights",
        "mode": "lines",
        "x": distances,
        "y": np.asarray(chance, np.float32),
        "line": {"color": style.CHOSEN, "shape": "hvh", "width": 1.5},
        "hovertemplate": "even weights: %{y:.1%}<extra></extra>",
    }
    still = {"fixedrange": True, "zeroline": False}
    title = {"text": "query − key, in tokens (above 0: an earlier key)", "font": {"size": 11}}
    layout = {
        "xaxis": still | {"showgrid": False, "tickvals": marks, "ticktext": texts, "title": title},
        "yaxis": still | {"tickformat": ".0%", "gridcolor": _GRID, "rangemode": "tozero"},
        "height": 260,
        "margin": {"l": 44, "t": 28, "r": 6, "b": 44},
        "bargap": 0.15,
        "dragmode": False,
    }
    return style.figure(style.spec([bars, even], layout | style.LEGEND))


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
    values: np.ndarray | None = None  # (n,) what shades the colour, from the smallest to the largest


def plane(
    marks: Sequence[Marks],
    titles: tuple[str, str],  # of the axes, from left to right and upwards
    chosen: tuple[float, float] | None = None,  # a point with a ring
    texts: Sequence[tuple[float, float, str]] = (),  # words at points
    ends: tuple[str, str] | None = None,  # what the smallest and the largest value of a shade are
    even: bool = False,  # whether both axes have the same scale, because distances and angles count
    falling: bool = False,  # whether the smallest value of a shade is the strongest
) -> go.Figure:
    """Draws points in a plane; a click gives a point whose `customdata` is that of the mark."""
    data = [_marks(each) for each in marks]
    low, high = [], []
    for each in marks:
        if each.values is not None and len(each.values):
            low.append(float(np.nanmin(each.values)))
            high.append(float(np.nanmax(each.values)))
    if ends and low and max(high) > min(low):
        ticks = {min(low): labels.escape(ends[0]), max(high): labels.escape(ends[1])}
        for trace in data:
            trace["marker"] |= {"cmin": min(low), "cmax": max(high), "reversescale": falling}
        data[0]["marker"] |= {"showscale": True, "colorbar": colour_bar(ticks, 0.4) | {"ypad": 44}}
    if chosen is not None:
        ring = {"symbol": "circle-open", "size": 17, "color": style.CHOSEN, "line": {"width": 2.5}}
        data.append(
            {"type": "scatter", "mode": "markers", "x": [chosen[0]], "y": [chosen[1]], "marker": ring}
            | {"hoverinfo": "skip", "showlegend": False}
        )
    axes = {"fixedrange": True, "gridcolor": _GRID, "zerolinecolor": style.NEUTRAL, "tickfont": {"size": 10}}
    named = [{"title": {"text": labels.escape(text), "font": {"size": 11}, "standoff": 6}} for text in titles]
    layout = {
        "xaxis": axes | named[0],
        "yaxis": axes | named[1] | ({"scaleanchor": "x", "constrain": "domain"} if even else {}),
        "annotations": [
            {
                "x": x,
                "y": y,
                "text": labels.escape(text),
                "showarrow": False,
                "yshift": 9,
                "font": {"size": 10},
            }
            for x, y, text in texts
        ],
        "height": 430,
        "margin": {"l": 48, "t": 30, "r": 8, "b": 44 + _LEGEND * bool(ends)},
        "dragmode": False,
        "clickmode": "event+select",
        "hovermode": "closest",
    }
    legend = style.LEGEND if any(each.name for each in marks) else {}
    return style.figure(style.spec(data, layout | legend))


def _marks(marks: Marks) -> dict[str, Any]:
    look: dict[str, Any] = {"symbol": marks.symbol, "size": 8, "color": marks.colour}
    if marks.values is not None:
        faint, full = style.rgba(marks.colour, 0.2), style.rgba(marks.colour, 1)
        look |= {"color": np.asarray(marks.values, np.float32), "colorscale": [(0.0, faint), (1.0, full)]}
    return {
        "type": "scatter",
        "mode": "markers",
        "name": marks.name,
        "showlegend": bool(marks.name),
        "x": np.asarray(marks.x, np.float32),
        "y": np.asarray(marks.y, np.float32),
        "customdata": list(marks.data),
        "hovertext": [hover(note) for note in marks.notes],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": look,
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
    }
