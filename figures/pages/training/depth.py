"""A quantity of every layer: encoder and decoder beside each other, on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from figures.base import labels, style
from figures.pages.training.curves import titled_axis

FLOOR = 1e-10
"""The lower end of the axis: below this value, rounding errors decide."""


@dataclass(frozen=True)
class Layers:
    """A line through all layers of a model."""

    name: str  # what the legend calls it
    encoder: Sequence[float]  # the quantity in each encoder layer
    decoder: Sequence[float]  # the quantity in each decoder layer
    color: str  # of the line
    dash: str = "solid"  # of the line, as Plotly names it


def by_layer(
    models: Sequence[Layers],  # the lines
    title: str,  # what the vertical axis shows
) -> go.Figure:
    """Draws a line for each model."""
    bottom, top = ends([value for each in models for value in (*each.encoder, *each.decoder)])
    rows = 1 + (len(models) - 1) // 2
    layout: dict[str, Any] = {
        "height": 380 + 12 * rows,
        "margin": {"l": 66, "r": 12, "t": 22 + 19 * rows, "b": 46},
        "xaxis": _layers("encoder layer", models, "encoder") | {"domain": [0, 0.48]},
        "xaxis2": _layers("decoder layer", models, "decoder") | {"domain": [0.52, 1]},
        "yaxis": titled_axis(title) | {"type": "log", "range": [bottom, top], "exponentformat": "power"},
        "dragmode": False,
        "hovermode": "closest",
        **style.LEGEND,
    }
    layout["yaxis"] |= {"dtick": math.ceil((top - bottom) / 10)} if top - bottom > 2 else _ones(bottom, top)
    data = [_line(each, side, title) for each in models for side in ("encoder", "decoder")]
    return style.figure(style.spec(data, layout))


def ends(values: Sequence[float]) -> tuple[float, float]:
    """The ends of the axis, as powers of ten: at least one decade, and not below FLOOR."""
    seen = [math.log10(value) for value in values if value >= FLOOR]
    low = math.log10(FLOOR) if len(seen) < len(values) or not seen else min(seen)
    high = max(seen, default=low + 1)
    room = max(0.06 * (high - low), (1 - (high - low)) / 2, 0.05)
    return low - (room if len(seen) == len(values) else 0), high + room


def _ones(bottom: float, top: float) -> dict[str, Any]:
    """Ticks at 1, 2 and 5 times every power of ten, each written in full."""
    decades = range(math.floor(bottom), math.ceil(top))
    values = [digit * 10.0**power for power in decades for digit in (1, 2, 5)]
    return {"tickvals": values, "ticktext": [f"{value:,.6g}" for value in values]}


def _layers(title: str, models: Sequence[Layers], side: str) -> dict[str, Any]:
    count = max(len(getattr(each, side)) for each in models)
    return titled_axis(title) | {"range": [0.7, count + 0.3], "tick0": 1, "dtick": 1 + (count - 1) // 12}


def _line(model: Layers, side: str, title: str) -> dict[str, Any]:
    values = model.encoder if side == "encoder" else model.decoder
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": labels.escape(model.name),
        "legendgroup": model.name,
        "showlegend": side == "encoder",
        "x": list(range(1, len(values) + 1)),
        "y": [value if value > 0 else None for value in values],
        "xaxis": "x" if side == "encoder" else "x2",
        "line": {"color": model.color, "dash": model.dash, "width": 2, "simplify": False},
        "marker": {"color": model.color, "size": 5},
        "hovertemplate": f"{side} layer %{{x}}: {labels.escape(title)} %{{y:.2e}}",
    }
