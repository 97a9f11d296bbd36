"""Effect of a change: bars of Δ log p by step, the same change at other heads, and cells to click."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.cells import targets

_ROW = 24
_STRIP = 0.36
"""Distance of dots above and below the middle of their strip; the bar is half as high."""


@dataclass(frozen=True)
class StepMove:
    """Outcome of one step."""

    token: str  # the token that the run without the changes wrote
    delta: float  # the change of its log-probability, in nats; NaN if it is not known
    note: str  # the hover text


def delta_bars(
    steps: Sequence[StepMove],  # what became of each step
    parting: int | None,  # the step, from 0, at which the runs part; None if they do not
) -> go.Figure:
    """Bars of Δ log p, one row per step from the top; a line under the step at which the runs part."""
    shown = [0.0 if each.delta != each.delta else each.delta for each in steps]
    most = max(0.1, *map(abs, shown))
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": shown,
        "y": list(range(len(steps))),
        "marker": {"color": [style.POSITIVE if value > 0 else style.NEGATIVE for value in shown]},
        "text": [labels.moved(each.delta) for each in steps],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertext": [labels.escape(each.note).replace("\n", "<br>") for each in steps],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    names = [labels.escape(labels.shorten(labels.piece(each.token))) for each in steps]
    here = [] if parting is None or parting >= len(steps) else [_line(parting + 0.5)]
    layout = {
        "height": 40 + _ROW * len(steps),
        "margin": {"l": 110, "r": 20, "t": 8, "b": 32},
        "bargap": 0.3,
        "shapes": here,
        "xaxis": _nats("Δ log p, nats", most),
        "yaxis": {
            "tickvals": list(range(len(steps))),
            "ticktext": names,
            "range": [len(steps) - 0.5, -0.5],
            "fixedrange": True,
        },
        "dragmode": False,
    }
    return style.figure(style.spec([bars], layout))


def _nats(title: str, most: float) -> dict[str, object]:
    """An axis for differences of log-probabilities, with room for a number at the end of the longest bar."""
    return {
        "range": [-1.3 * most, 1.3 * most],
        "fixedrange": True,
        "title": {"text": title, "font": {"size": 10}},
        "gridcolor": "rgba(128,128,128,.2)",
        "zerolinecolor": "rgba(128,128,128,.7)",
    }


def _line(y: float) -> dict[str, object]:
    line = {"color": "rgba(128,128,128,.9)", "width": 1.5, "dash": "dot"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}


def control_strip(
    effect: float,  # Δ log p of the whole translation by the change, in nats
    others: Sequence[float],  # the same by each other change
    notes: Sequence[str],  # hover texts: of the change, then of the others
) -> go.Figure:
    """A bar for the effect of a change, over a strip of grey dots for the same change at other heads."""
    most = max(0.1, abs(effect), *map(abs, others))
    texts = [labels.escape(each) for each in notes]
    hover = {"hovertemplate": "%{hovertext}<extra></extra>"}
    bar = {
        "type": "bar",
        "orientation": "h",
        "x": [effect],
        "y": [0],
        "width": [_STRIP],
        "marker": {"color": style.POSITIVE if effect > 0 else style.NEGATIVE},
        "hovertext": texts[:1],
        **hover,
    }
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": list(others),
        "y": [_STRIP * place for place in np.linspace(-1, 1, len(others) + 2)[1:-1]],
        "marker": {"size": 9, "color": style.NEUTRAL, "line": {"width": 1, "color": "rgba(128,128,128,.9)"}},
        "hovertext": texts[1:],
        **hover,
    }
    layout = {
        "height": 96,
        "margin": {"l": 20, "r": 20, "t": 4, "b": 34},
        "xaxis": _nats("Δ log p of the whole translation, nats", most),
        "yaxis": {"range": [-0.5, 0.5], "visible": False, "fixedrange": True},
        "dragmode": False,
        "hovermode": "closest",
    }
    return style.figure(style.spec([bar, dots], layout))


def clickable(
    figure: go.Figure,  # the map
    # what each cell, by row and column, gives as `customdata` if it is clicked
    places: Sequence[Sequence[tuple[int, int]]],
    chosen: tuple[int, int] | None,  # one of them, whose cell is framed
    side: float,  # px of a cell
) -> go.Figure:
    """Lets the cells of a map of differences be clicked, because Streamlit reports no clicks on a heatmap."""
    cells = figure.data[0]
    texts = cells.text
    at = [(i, j) for i, row in enumerate(places) for j, _ in enumerate(row)]
    notes = [_cell_note(texts[i][j], *map(float, cells.customdata[i, j])) for i, j in at]
    figure.data[0].update(hoverinfo="skip", hovertemplate=None, text=None)
    data = [places[i][j] for i, j in at]
    figure.add_trace(targets([j for _, j in at], [i for i, _ in at], data, notes, side))
    for i, j in [place for place in at if places[place[0]][place[1]] == chosen]:
        box = {"x0": j - 0.5, "x1": j + 0.5, "y0": i - 0.5, "y1": i + 0.5}
        figure.add_shape(type="rect", **box, line={"color": style.CHOSEN, "width": 2})
    return figure.update_layout(clickmode="event+select", hovermode="closest")


def _cell_note(names: str, first: float, second: float) -> str:
    difference = labels.number(first - second, "+.3f")
    return f"{names}<br>changed {first:.3f} · as it is {second:.3f} · difference {difference}"
