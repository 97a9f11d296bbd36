"""The frame of every map between two lists of tokens: square cells, labels above and to the left."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec

LEGEND = 34
"""Px of the legend under a map."""
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
    below: int = 0,  # px for a legend under the map, which make the figure higher
) -> Spec:
    """The layout of a map."""
    longest = max(len(rows), len(columns))
    across, down = (plot.token_axis(each, size, longest, room) for each in (columns, rows))
    across |= {"side": "top", "tickangle": -90, "constrain": "domain", "constraintoward": "left"}
    down |= {"range": [len(rows) - 0.5, -0.5], "scaleanchor": "x"}
    down |= {"constrain": "domain", "constraintoward": "top"}
    more, around = round((room - labels.ROOM) * style.label_size(longest, size)), style.margin(size)
    left, top = around["l"] + more, around["t"] + more
    corner = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top"}
    spare = [min(0, size - around["l"] - _LETTERS * labels.width(title)) for title in titles]
    beside = {"xshift": _EDGE - left, "yshift": -spare[0], "textangle": -90}
    return {
        "xaxis": across,
        "yaxis": down,
        "width": size + more,
        "height": size + more + below,
        "margin": {"l": left, "t": top, "r": around["r"], "b": around["b"] + below, "autoexpand": False},
        "annotations": [
            plot.note(titles[1], 0, 1, _LETTERS, **corner, xshift=spare[1], yshift=top - _EDGE),
            plot.note(titles[0], 0, 1, _LETTERS, **corner, **beside),
        ],
    }


def row_ends(layout: Spec, texts: Sequence[str], heading: str, right: int) -> Spec:
    """Writes something at the end of every row of a map, in `right` px; returns the trace that it needs."""
    down = layout["yaxis"]
    ends = {"overlaying": "y", "side": "right", "ticktext": [texts[i] for i in down["tickvals"]]}
    corner = {"xref": "x domain", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "xshift": 4}
    layout["yaxis2"] = down | ends
    layout["margin"]["r"] = right
    layout["annotations"].append(plot.note(heading, 1, 1, 9, **corner))
    return plot.nothing(yaxis="y2", x=[0], hoverinfo="skip")


def framed(figure: go.Figure, row: int) -> go.Figure:
    """Frames a row of a map, counted from 0."""
    columns = figure.data[0].z.shape[1]
    return figure.add_shape(plot.rectangle(-0.5, columns - 0.5, row - 0.5, row + 0.5))


def row_frame(figure: go.Figure, row: int) -> dict[str, float]:
    """Px and numbers of cells that place a frame over a row of a map, from 0, at any width of the figure."""
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
