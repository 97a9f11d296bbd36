"""Figures of the page "Is attention an explanation?": measures of keys, shares, parts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style

_ROW, _LEFT, _TOP = 34, 150, 74
_NUMBERS = 16
"""Up to this many columns, each cell says its number."""
_FADED = 1.5
"""End of the scale, in shares: below full colour, so that numbers can be read in every cell."""
_LEAST = {True: 0.1, False: 1e-6}
"""Least end of a scale: changes below it, in nats, stay pale."""


@dataclass(frozen=True, eq=False)
class MeasureRow:
    """A measure of every column."""

    name: str
    values: np.ndarray  # (columns,), not a number where there is none
    signed: bool = False  # whether it is a change in nats; such rows share one scale


def measures_map(
    rows: Sequence[MeasureRow], columns: Sequence[str], ink: str = "#1d232c"
) -> go.Figure:
    """Measures as rows; the colour is a share of the row's largest, or of all rows' in nats."""
    shares = np.array([row.values / end for row, end in zip(rows, _ends(rows), strict=True)])
    texts = [[_written(value, row.signed) for value in row.values.tolist()] for row in rows]
    notes = [
        [
            labels.escape(f"{row.name} · {column}: {text}")
            for column, text in zip(columns, row_texts, strict=True)
        ]
        for row, row_texts in zip(rows, texts, strict=True)
    ]
    cells = plot.heat(shares, (-_FADED, _FADED), style.DIVERGING, xgap=1, ygap=1)
    cells |= {"hovertext": notes, "hoverinfo": "text"}
    if len(columns) <= _NUMBERS:
        cells |= {"text": texts, "texttemplate": "%{text}", "textfont": {"size": 10, "color": ink}}
    across = list(map(labels.escape, columns))
    down = [labels.escape(row.name) for row in rows]
    x = plot.named_axis(across, 11, max(1, len(columns) // 48), side="top", tickangle=-90)
    y = plot.named_axis(down, down=True, side="left")
    return plot.figure([cells], x, y, _TOP + _ROW * len(rows) + 8, (_LEFT, _TOP, 6, 8))


def _ends(rows: Sequence[MeasureRow]) -> list[float]:
    """The end of the scale of each row; rows in nats share theirs."""
    largest = [float(np.nanmax(np.abs(row.values), initial=0.0)) for row in rows]
    in_nats = [end for end, row in zip(largest, rows, strict=True) if row.signed]
    ends = []
    for end, row in zip(largest, rows, strict=True):
        if row.signed:
            end = max(in_nats)
        ends.append(max(end, _LEAST[row.signed]))
    return ends


def _written(value: float, signed: bool) -> str:
    """A cell's number: "0" is a zero, up to rounding, and "0.00" is more than that."""
    if math.isnan(value):
        return "–"
    if abs(value) < labels.ROUNDING:
        return "0"
    return labels.number(value, "+.2f" if signed else ".2f")


def share_bars(steps: Sequence[str], source: np.ndarray) -> go.Figure:
    """The source's share (steps,) of every named step, from 0 to 1, under the prefix's."""
    data = []
    for origin, shares, kind in (("source", source, "cross"), ("prefix", 1 - source, "decoder")):
        notes = [
            labels.escape(f"{step}: {origin} {share:.2f}")
            for step, share in zip(steps, shares.tolist(), strict=True)
        ]
        bars = plot.bars(
            shares.astype(np.float32),
            style.HUES[kind],
            across=False,
            name=origin,
            hovertext=notes,
            hoverinfo="text",
        )
        data.append(bars)
    return plot.figure(
        data,
        plot.named_axis(list(map(labels.escape, steps)), side="bottom", tickangle=-90),
        {"range": [0, 1], "tickvals": [0, 0.5, 1], "title": {"text": "share"}, "fixedrange": True},
        300,
        (52, 30, 8, 86),
        barmode="stack",
        bargap=0.25,
        **plot.legend(12, top=False),
    )


def part_bars(names: Sequence[str], values: np.ndarray) -> go.Figure:
    """Parts of a sum as bars, from the top, with their numbers."""
    values = values.astype(np.float32)
    texts = [labels.number(value, "+.2f") for value in values.tolist()]
    notes = [labels.escape(f"{name}: {text} nats") for name, text in zip(names, texts, strict=True)]
    room = 1.25 * max(float(np.abs(values).max(initial=0.0)), 1e-3)
    return plot.figure(
        [
            plot.bars(
                values,
                style.sign_hues(values),
                text=texts,
                textfont={"size": 10},
                hovertext=notes,
                hoverinfo="text",
            )
        ],
        {"title": {"text": "nats"}, "range": [-room, room], "zeroline": True},
        plot.named_axis([labels.escape(name) for name in names], down=True, side="left"),
        24 * len(names) + 56,
        (20 + 7 * max(map(len, names), default=20), 8, 8, 44),
    )
