"""Columns of places and the lines between them: the thicker a line, the more of a number passes along it."""

from __future__ import annotations

import html
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


class WayLine(NamedTuple):
    """What one place passes to another."""

    start: int  # the places, by number
    end: int
    value: float  # nats
    data: Any = None  # as of a place


def way_graph(
    titles: Sequence[str],  # of the columns, from 0
    places: Sequence[Place],  # column by column, each from the top
    lines: Sequence[WayLine],
) -> go.Figure:
    """Draws the columns from right to left, so that what was read stands left of who read it."""
    spots, rows = _spots(len(titles), places)
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


def _spots(columns: int, places: Sequence[Place]) -> tuple[list[tuple[float, float]], int]:
    """Where each place lies, in columns from the left and rows from the top; and how many rows there are."""
    counts = [sum(each.column == column for each in places) for column in range(columns)]
    rows, seen = max(counts), [0] * columns
    spots = list[tuple[float, float]]()
    for each in places:
        at = seen[each.column]
        seen[each.column] += 1
        spots.append((columns - 1 - each.column, (at + 0.5) * rows / counts[each.column]))
    return spots, rows


def way_svg(
    titles: Sequence[str],  # as in `way_graph`
    places: Sequence[Place],
    lines: Sequence[WayLine],
    width: int = 190,  # px of a column
) -> str:
    """The same columns as a picture of their own, whose letters have the colour of the text around it."""
    spots, rows = _spots(len(titles), places)
    at = [((x + 0.5) * width, _TOP + y * _ROW) for x, y in spots]
    largest = max((abs(each.value) for each in lines), default=1.0) or 1.0
    drawn = [_letters((len(titles) - 0.5 - i) * width, 14, each) for i, each in enumerate(titles)]
    for each in sorted(lines, key=lambda line: abs(line.value)):
        (a, b), (c, d) = at[each.start], at[each.end]
        middle = (a + c) / 2
        curve = f"M{a:.0f} {b:.0f}C{middle:.0f} {b:.0f} {middle:.0f} {d:.0f} {c:.0f} {d:.0f}"
        drawn.append(
            f'<path d="{curve}" fill="none" '
            f'stroke="{_hue(each.value)}" stroke-opacity=".5" '
            f'stroke-width="{max(0.5, _WIDEST * abs(each.value) / largest):.1f}">'
            f"<title>{html.escape(_said(places, each))}</title></path>"
        )
    for (x, y), place in zip(at, places, strict=True):
        drawn.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4" fill="{_hue(place.value)}"/>')
        drawn.append(_letters(x, y - 8, f"{place.name} {labels.number(place.value, '+.2f')}"))
    size = f"0 0 {width * len(titles)} {_TOP + _ROW * rows + _BOTTOM}"
    alt = "The way back, from the source words on the left to the logit on the right"
    begin = f'<svg viewBox="{size}" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{alt}">'
    return f"{begin}{''.join(drawn)}</svg>"


def _letters(x: float, y: float, text: str) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle" font-size="12" fill="currentColor">'
        f"{html.escape(text)}</text>"
    )


def _hue(value: float) -> str:
    return style.POSITIVE if value > 0 else style.NEGATIVE


def _lines(spots: Sequence[tuple[float, float]], lines: Sequence[WayLine]) -> list[dict[str, Any]]:
    largest = max((abs(each.value) for each in lines), default=1.0) or 1.0
    grouped = defaultdict[tuple[int, bool], list[WayLine]](list)
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
    spots: Sequence[tuple[float, float]], places: Sequence[Place], lines: Sequence[WayLine]
) -> dict[str, Any]:
    """What hovering over a line finds: its middle."""
    middles = [_curve(spots[each.start], spots[each.end])[len(_CURVE) // 2] for each in lines]
    points = np.array(middles, np.float32).reshape(-1, 2)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": points[:, 0],
        "y": points[:, 1],
        "marker": {"size": 12, "opacity": 0},
        "hovertext": [labels.escape(_said(places, each)) for each in lines],
        "hoverinfo": "text",
        "customdata": [each.data for each in lines],
        **_whole(0),
    }


def _said(places: Sequence[Place], line: WayLine) -> str:
    return f"{places[line.end].name} → {places[line.start].name}: {labels.number(line.value, '+.3f')} nats"


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
            "color": [_hue(each.value) for each in places],
        },
        "hovertext": [labels.escape(f"{each} nats") for each in texts],
        "hoverinfo": "text",
        "customdata": [each.data for each in places],
        **_whole(1),
    }
