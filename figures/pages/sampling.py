"""The next-token distribution before and after temperature, top-k and top-p."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from figures.base import labels, style
from figures.base.bars import percent

_ROW = 26
BEFORE, AFTER = style.NEUTRAL, style.POSITIVE


def before_after(
    tokens: Sequence[str], before: Sequence[float], after: Sequence[float], written: int
) -> go.Figure:
    """Draws two bars for each token: its probability under the model, and that of being drawn.

    Args:
        tokens: the pieces, most probable first.
        before: the model's probabilities.
        after: the probabilities with which they are drawn.
        written: place of the token that was drawn.
    """
    names = [labels.escape(labels.shorten(labels.display(token))) for token in tokens]
    names[written] = f"<b>{names[written]}</b>"
    notes = [
        f"{labels.escape(labels.display(token))}<br>the model: {percent(a)} (log p {_nats(a)})"
        f"<br>drawn with: {percent(b) if b else 'never'}"
        for token, a, b in zip(tokens, before, after, strict=True)
    ]
    layout = {
        "height": 46 + _ROW * len(tokens),
        "margin": {"l": 96, "r": 40, "t": 30, "b": 6},
        "bargap": 0.3,
        "bargroupgap": 0.05,
        "barmode": "group",
        "xaxis": {"range": [0, 1.05], "visible": False, "fixedrange": True},
        "yaxis": {
            "tickvals": list(range(len(tokens))),
            "ticktext": names,
            "range": [len(tokens) - 0.45, -0.55],
            "fixedrange": True,
            "ticks": "",
        },
        "dragmode": False,
        "showlegend": True,
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "top",
            "yref": "container",
            "font": {"size": 11},
            "itemclick": False,
            "itemdoubleclick": False,
            "traceorder": "normal",
        },
    }
    data = [
        _bars("the model", before, notes, BEFORE),
        _bars("after temperature, top-k and top-p", after, notes, AFTER),
    ]
    return style.figure(style.spec(data, layout))


def _bars(name: str, shares: Sequence[float], notes: Sequence[str], color: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": list(shares),
        "y": list(range(len(shares))),
        "marker": {"color": color},
        "text": [labels.escape(percent(share)) if share else "–" for share in shares],
        "textposition": "outside",
        "constraintext": "none",
        "textfont": {"size": 10},
        "cliponaxis": False,
        "hovertext": list(notes),
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _nats(share: float) -> str:
    return labels.number(math.log(share)) if share > 0 else "−∞"
