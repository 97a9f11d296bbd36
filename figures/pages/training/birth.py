"""Quantities of a training run at its snapshots, which stand at even distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from figures.base import labels, style
from figures.base.cells import hover, targets
from figures.pages.training.curves import titled_axis, upright

_CLICK = 26
"""Px of the side of the square that answers a click on a point."""
_EVERY = 7
"""About this many snapshots have a label, so that the labels fit into a narrow picture."""


@dataclass(frozen=True)
class Trend:
    """One line over the snapshots."""

    name: str  # what the legend calls it; empty for a line without an entry, such as another seed's
    values: Sequence[float]  # one for each snapshot
    color: str  # of the line
    faint: bool = False  # whether the line is thin, such as another seed's
    dash: str = "solid"  # of the line, as Plotly names it
    notes: Sequence[str] = ()  # hover text of each point; empty for the value alone


def over_snapshots(
    steps: Sequence[int],  # the training step of each snapshot
    trends: Sequence[Trend],  # the lines; the first one answers clicks if a snapshot is chosen
    title: str,  # the measured quantity
    # the snapshot (from 0) at which a thin vertical line stands; None for a picture without one
    chosen: int | None = None,
    percent: bool = False,  # whether the values are shares
    height: int = 260,  # in px
) -> go.Figure:
    """Draws lines over the snapshots of a run; a click on a point gives its snapshot, counted from 0."""
    data = [_line(each, steps, percent) for each in trends]
    if chosen is not None:
        places = list(range(len(steps)))
        notes = [hover(_note(trends[0], steps, i, percent)) for i in places]
        data.append(targets(places, list(trends[0].values), places, notes, _CLICK))
    vertical = titled_axis(title) | {"rangemode": "tozero"}
    layout = {
        "height": height,
        "margin": {"l": 70, "r": 12, "t": 34, "b": 48},
        "xaxis": titled_axis("training step") | _places(steps),
        "yaxis": vertical | {"tickformat": ".0%" if percent else "~g"},
        "shapes": [] if chosen is None else [upright(chosen)],
        "dragmode": False,
        "clickmode": "event+select",
        "hovermode": "closest",
        **style.LEGEND,
    }
    return style.figure(style.spec(data, layout))


def _places(steps: Sequence[int]) -> dict[str, Any]:
    """An axis on which every snapshot has as much room, whatever its step; some have labels."""
    every = max(1, round(len(steps) / _EVERY))
    shown = list(range(len(steps) - 1, -1, -every))[::-1]
    return {
        "tickvals": shown,
        "ticktext": [f"{steps[i]:,}" for i in shown],
        "range": [-0.4, len(steps) - 0.6],
        "rangemode": "normal",
    }


def _line(each: Trend, steps: Sequence[int], percent: bool) -> dict[str, Any]:
    shown = [hover(_note(each, steps, i, percent)) for i in range(len(steps))]
    return {
        "type": "scatter",
        "mode": "lines" if each.faint or each.dash != "solid" else "lines+markers",
        "name": labels.escape(each.name),
        "showlegend": bool(each.name),
        "x": list(range(len(steps))),
        "y": [float(value) for value in each.values],
        "line": {"color": each.color, "dash": each.dash, "width": 1 if each.faint else 2},
        "marker": {"size": 6, "color": each.color},
        "opacity": 0.6 if each.faint else 1,
        "hovertext": shown,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _note(each: Trend, steps: Sequence[int], i: int, percent: bool) -> str:
    value = f"{100 * each.values[i]:.1f}{labels.PER_CENT}" if percent else f"{each.values[i]:.2f}"
    name = f"{each.name}: " if each.name else ""
    more = f"\n{each.notes[i]}" if each.notes else ""
    return f"step {steps[i]:,}\n{name}{value}{more}"
