"""What a change did, step by step: bars of Δ log p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from figures.base import labels, style

_ROW = 24


@dataclass(frozen=True)
class Moved:
    """What became of one step.

    Attributes:
        token: The token that the run without the changes wrote.
        delta: The change of its log-probability, in nats; NaN if it is not known.
        note: The hover text.
    """

    token: str
    delta: float
    note: str


def delta_bars(steps: Sequence[Moved], parting: int | None) -> go.Figure:
    """Bars of Δ log p, one row per step from the top; a line under the step at which the runs part.

    Args:
        steps: What became of each step.
        parting: The step, from 0, at which the runs part; None if they do not.
    """
    shown = [0.0 if each.delta != each.delta else each.delta for each in steps]
    most = max(0.1, *map(abs, shown))
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": shown,
        "y": list(range(len(steps))),
        "marker": {"color": [style.POSITIVE if value > 0 else style.NEGATIVE for value in shown]},
        "text": [labels.number(value, "+.2f") for value in shown],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertext": [labels.escape(each.note).replace("\n", "<br>") for each in steps],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    names = [labels.escape(labels.shorten(labels.display(each.token))) for each in steps]
    here = [] if parting is None or parting >= len(steps) else [_line(parting + 0.5)]
    layout = {
        "height": 40 + _ROW * len(steps),
        "margin": {"l": 110, "r": 20, "t": 8, "b": 32},
        "bargap": 0.3,
        "shapes": here,
        "xaxis": {
            "range": [-1.3 * most, 1.3 * most],
            "fixedrange": True,
            "title": {"text": "Δ log p, nats", "font": {"size": 10}},
            "gridcolor": "rgba(128,128,128,.2)",
            "zerolinecolor": "rgba(128,128,128,.7)",
        },
        "yaxis": {
            "tickvals": list(range(len(steps))),
            "ticktext": names,
            "range": [len(steps) - 0.5, -0.5],
            "fixedrange": True,
        },
        "dragmode": False,
    }
    return style.figure(style.spec([bars], layout))


def _line(y: float) -> dict[str, object]:
    line = {"color": "rgba(128,128,128,.9)", "width": 1.5, "dash": "dot"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}
