"""The frame of every map between two lists of tokens: square cells, labels above and to the left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.strips import frame

_EDGE = 3
"""Px between a title and the edge of the figure."""
_LETTERS = 10
"""Font size of a title in px; a title longer than the map starts before the map."""


def token_grid(
    rows: Sequence[str],  # tokens from top to bottom
    columns: Sequence[str],  # tokens from left to right
    titles: tuple[str, str],  # titles of the rows and of the columns
    size: int = style.SIZE,  # width and height in px
    # widest label, in multiples of the font size; labels wider than usual enlarge the map
    room: float = labels.ROOM,
) -> dict[str, Any]:
    """The layout of a map."""
    longest = max(len(rows), len(columns))
    across = style.token_axis(labels.ticks(columns, room), size, longest)
    down = style.token_axis(labels.ticks(rows, room), size, longest)
    across |= {"side": "top", "tickangle": -90, "constrain": "domain", "constraintoward": "left"}
    down |= {"range": [len(rows) - 0.5, -0.5], "scaleanchor": "x"}
    down |= {"constrain": "domain", "constraintoward": "top"}
    more = round((room - labels.ROOM) * style.label_size(longest, size))
    usual = style.margin(size)
    margin = usual | {"l": usual["l"] + more, "t": usual["t"] + more}
    corner = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "top"}
    spare = [min(0, size - usual["l"] - _LETTERS * labels.width(title)) for title in titles]
    return {
        "xaxis": across,
        "yaxis": down,
        "width": size + more,
        "height": size + more,
        "margin": margin | {"autoexpand": False},
        "dragmode": False,
        "annotations": [
            _title(titles[1], **corner, xshift=spare[1], yshift=margin["t"] - _EDGE),
            _title(titles[0], **corner, xshift=_EDGE - margin["l"], yshift=-spare[0], textangle=-90),
        ],
    }


def framed(figure: go.Figure, row: int) -> go.Figure:
    """Frames a row of a map, counted from 0."""
    columns = figure.data[0].z.shape[1]
    figure.add_shape(frame(-0.5, columns - 0.5, row - 0.5, row + 0.5))
    return figure


def row_frame(figure: go.Figure, row: int) -> dict[str, float]:
    """Px and numbers of cells that place a frame over a row of a map, from 0, however wide the figure is.

    Cells are squares that fill the room between the margins in one direction, from its upper left corner.
    """
    around, (rows, columns) = figure.layout.margin, figure.data[0].z.shape
    high = figure.layout.height - around.t - around.b
    sides = {"left": around.l, "top": around.t, "beside": around.l + around.r, "high": high}
    return {**sides, "rows": rows, "columns": columns, "row": row}


def lowered(figure: go.Figure, by: int) -> go.Figure:
    """Moves the cells of a map down by `by` px, level with those of a map beside it; the title stays."""
    figure.layout.height += by
    figure.layout.margin.t += by
    figure.layout.annotations[0].yshift += by
    return figure


def _title(text: str, **place: object) -> dict[str, object]:
    return {
        "text": text,
        "xref": "paper",
        "yref": "paper",
        "showarrow": False,
        "font": {"size": _LETTERS},
        **place,
    }
