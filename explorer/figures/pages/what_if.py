"""Effect of a change: bars of Δ log p by step, the same change at other heads, and cells to click."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec

_ROW = 24
_STRIP = 0.36
"""Distance of dots above and below the middle of their strip; the bar is half as high."""


@dataclass(frozen=True)
class StepMove:
    """Outcome of one step."""

    token: str  # the token that the run without the changes wrote
    delta: float  # the change of its log-probability, in nats; NaN if it is not known
    note: str  # the hover text


def delta_bars(steps: Sequence[StepMove], parting: int | None) -> go.Figure:
    """Bars of Δ log p, one row per step; a line under the step (from 0) at which the runs part."""
    shown = [0.0 if each.delta != each.delta else each.delta for each in steps]
    moved = [labels.moved(each.delta) for each in steps]
    names = [labels.short(each.token) for each in steps]
    rows = {"tickvals": list(range(len(steps))), "ticktext": names, "fixedrange": True}
    return plot.figure(
        [
            plot.bars(
                shown,
                style.sign_hues(shown),
                text=moved,
                **plot.noted([plot.hover(each.note) for each in steps]),
            )
        ],
        _nats("Δ log p, nats", shown),
        rows | {"range": [len(steps) - 0.5, -0.5]},
        40 + _ROW * len(steps),
        (110, 8, 20, 32),
        bargap=0.3,
        shapes=[] if parting is None or parting >= len(steps) else [plot.stroke(y=parting + 0.5, width=1.5)],
    )


def _nats(title: str, values: Sequence[float]) -> Spec:
    """An axis for differences of log-probabilities, with room for a number at the end of the longest bar."""
    most = 1.3 * max(0.1, *map(abs, values))
    return {
        "range": [-most, most],
        "fixedrange": True,
        "title": {"text": title, "font": {"size": 10}},
        "gridcolor": style.GRID,
        "zerolinecolor": "rgba(128,128,128,.7)",
    }


def control_strip(effect: float, others: Sequence[float], notes: Sequence[str]) -> go.Figure:
    """The effect of a change in nats as a bar, over grey dots for the same change at other heads."""
    texts = [labels.escape(each) for each in notes]
    y = [_STRIP * place for place in np.linspace(-1, 1, len(others) + 2)[1:-1]]
    grey = {"size": 9, "color": style.NEUTRAL, "line": {"width": 1, "color": style.LINE}}
    return plot.figure(
        [
            plot.bars([effect], style.sign_hues([effect])[0], width=[_STRIP], **plot.noted(texts[:1])),
            plot.points(list(others), y, marker=grey, **plot.noted(texts[1:])),
        ],
        _nats("Δ log p of the whole translation, nats", [effect, *others]),
        {"range": [-0.5, 0.5], "visible": False, "fixedrange": True},
        96,
        (20, 4, 20, 34),
        hovermode="closest",
    )


def clickable(
    figure: go.Figure,  # the map
    # what each cell, by row and column, gives as `customdata` if it is clicked
    places: Sequence[Sequence[tuple[int, int]]],
    chosen: tuple[int, int] | None,  # one of them, whose cell is framed
    side: float,  # px of a cell
) -> go.Figure:
    """Lets the cells of a map of differences be clicked, because Streamlit reports no clicks on a heatmap."""
    cells = figure.data[0]
    at = [(i, j) for i, row in enumerate(places) for j, _ in enumerate(row)]
    notes = []
    for i, j in at:
        first, second = map(float, cells.customdata[i, j])
        difference = f"difference {labels.number(first - second, '+.3f')}"
        notes.append(f"{cells.text[i][j]}<br>changed {first:.3f} · as it is {second:.3f} · {difference}")
    cells.update(hoverinfo="skip", hovertemplate=None, text=None)
    data = [places[i][j] for i, j in at]
    figure.add_trace(plot.targets([j for _, j in at], [i for i, _ in at], data, notes, side))
    for i, j in [place for place in at if places[place[0]][place[1]] == chosen]:
        figure.add_shape(plot.rectangle(j - 0.5, j + 0.5, i - 0.5, i + 0.5, style.CHOSEN))
    return figure.update_layout(plot.CLICKS)
