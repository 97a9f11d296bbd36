"""Columns of places and the lines between them: the thicker a line, the more of a number passes along it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from figures.base import labels, style

_ROW, _TOP, _BOTTOM = 40, 34, 12
_WIDEST, _STEPS = 12.0, 8
"""Px of the thickest line, and how many widths there are: lines of one width are one trace."""
_CURVE = np.linspace(0, 1, 13)
_SMOOTH = _CURVE**2 * (3 - 2 * _CURVE)


class Place(NamedTuple):
    """One place of a column."""

    column: int  # from 0, the right one: what is split
    name: str
    value: float  # nats
    data: Any = None  # what a click on it gives, as the `customdata` of a point


class Line(NamedTuple):
    """What one place passes to another."""

    start: int  # the places, by number
    end: int
    value: float  # nats
    data: Any = None  # as of a place


def way_graph(
    titles: Sequence[str],  # of the columns, from 0
    places: Sequence[Place],  # column by column, each from the top
    lines: Sequence[Line],
) -> go.Figure:
    """Draws the columns from right to left, so that what was read stands left of who read it."""
    counts = [sum(each.column == column for each in places) for column in range(len(titles))]
    rows, seen = max(counts), [0] * len(titles)
    spots = []
    for each in places:
        at = seen[each.column]
        seen[each.column] += 1
        spots.append((len(titles) - 1 - each.column, (at + 0.5) * rows / counts[each.column]))
    layout = {
        "xaxis": {
            "range": [-0.45, len(titles) - 0.55],
            "tickvals": [*range(len(titles))],
            "ticktext": [labels.escape(each) for each in reversed(titles)],
            "side": "top",
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
        },
        "yaxis": {"range": [rows, 0], "visible": False, "fixedrange": True},
        "height": _TOP + _ROW * rows + _BOTTOM,
        "margin": {"l": 8, "t": _TOP, "r": 8, "b": _BOTTOM},
        "dragmode": False,
        "hovermode": "closest",
    }
    traces = [*_lines(spots, lines), _middles(spots, places, lines), _dots(spots, places)]
    return style.figure(style.spec(traces, layout))


def _lines(spots: Sequence[tuple[float, float]], lines: Sequence[Line]) -> list[dict[str, Any]]:
    largest = max((abs(each.value) for each in lines), default=1.0) or 1.0
    grouped = defaultdict[tuple[int, bool], list[Line]](list)
    for each in lines:
        grouped[round(_STEPS * abs(each.value) / largest), each.value > 0].append(each)
    traces = []
    for (width, positive), group in sorted(grouped.items()):
        curves = (_curve(spots[each.start], spots[each.end]) for each in group)
        points = np.concatenate([np.vstack([each, [[np.nan, np.nan]]]) for each in curves])
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": points[:, 0].astype(np.float32),
                "y": points[:, 1].astype(np.float32),
                "line": {
                    "width": max(0.5, _WIDEST * width / _STEPS),
                    "color": style.rgba(
                        style.POSITIVE if positive else style.NEGATIVE, 0.55 if width else 0.3
                    ),
                },
                "hoverinfo": "skip",
            }
        )
    return traces


def _curve(a: tuple[float, float], b: tuple[float, float]) -> np.ndarray:
    return np.stack([a[0] + (b[0] - a[0]) * _CURVE, a[1] + (b[1] - a[1]) * _SMOOTH], 1)


def _middles(
    spots: Sequence[tuple[float, float]], places: Sequence[Place], lines: Sequence[Line]
) -> dict[str, Any]:
    """What hovering over a line finds: its middle."""
    middles = [_curve(spots[each.start], spots[each.end])[len(_CURVE) // 2] for each in lines]
    points = np.array(middles, np.float32).reshape(-1, 2)
    said = [
        f"{places[each.end].name} → {places[each.start].name}: {labels.number(each.value, '+.3f')} nats"
        for each in lines
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": points[:, 0],
        "y": points[:, 1],
        "marker": {"size": 12, "opacity": 0},
        "hovertext": [labels.escape(each) for each in said],
        "hoverinfo": "text",
        "customdata": [each.data for each in lines],
        **_whole(0),
    }


def _whole(opacity: float) -> dict[str, Any]:
    """Nothing fades when another place is clicked."""
    own = {"marker": {"opacity": opacity}}
    return {"selected": own, "unselected": own}


def _dots(spots: Sequence[tuple[float, float]], places: Sequence[Place]) -> dict[str, Any]:
    points = np.array(spots, np.float32)
    texts = [f"{each.name} {labels.number(each.value, '+.2f')}" for each in places]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": points[:, 0],
        "y": points[:, 1],
        "text": [labels.escape(each) for each in texts],
        "textposition": "top center",
        "textfont": {"size": 11},
        "cliponaxis": False,
        "marker": {
            "size": 9,
            "color": [style.POSITIVE if each.value > 0 else style.NEGATIVE for each in places],
        },
        "hovertext": [labels.escape(f"{each} nats") for each in texts],
        "hoverinfo": "text",
        "customdata": [each.data for each in places],
        **_whole(1),
    }
