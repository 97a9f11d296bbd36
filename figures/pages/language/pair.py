"""Two sentences token by token: how surprising each token is, one sentence above the other's bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from figures.base import labels, style
from figures.base.cells import axis
from figures.pages.training.curves import titled_axis

COLORS = (style.POSITIVE, style.NEGATIVE)
NAMES = ("first", "second")


@dataclass(frozen=True)
class Read:
    """A sentence as the model reads it."""

    tokens: Sequence[str]  # its tokens, the end included
    bits: Sequence[float]  # the surprisal of each


def surprisals(first: Read, second: Read) -> go.Figure:
    """Draws the surprisal of each token of two sentences; a place with two different tokens names both."""
    longest = max(len(first.tokens), len(second.tokens))
    ticks = [_both(first, second, at) for at in range(longest)]
    layout = {
        "height": 300,
        "margin": {"l": 62, "r": 10, "t": 34, "b": 76},
        "barmode": "group",
        "bargap": 0.25,
        "xaxis": axis(ticks, "bottom", 11) | {"tickangle": -40},
        "yaxis": titled_axis("surprisal, bits") | {"rangemode": "tozero"},
        "dragmode": False,
        "hovermode": "closest",
        **style.LEGEND,
    }
    data = [_bars(each, *look) for each, *look in zip((first, second), NAMES, COLORS, strict=True)]
    return style.figure(style.spec(data, layout))


def _both(first: Read, second: Read, at: int) -> str:
    found = [each.tokens[at] for each in (first, second) if at < len(each.tokens)]
    shown = dict.fromkeys(labels.fitted(labels.piece(token), 9) for token in found)
    return " / ".join(labels.escape(token) for token in shown)


def _bars(each: Read, name: str, color: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": f"{name} sentence",
        "x": list(range(len(each.tokens))),
        "y": list(each.bits),
        "marker": {"color": color},
        "hovertext": [labels.escape(labels.piece(token)) for token in each.tokens],
        "hovertemplate": "%{hovertext}: %{y:.2f} bits<extra></extra>",
    }
