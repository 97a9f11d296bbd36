"""All heads of a kind coloured by one statistic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from figures.base import labels, style
from figures.base.cells import axis, colour_bar, hover, targets

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
    return style.figure(style.spec([_colours(cells, kind), _targets(cells, places)], layout))


def _colours(cells: Sequence[Sequence[Cell]], kind: str) -> dict[str, Any]:
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
