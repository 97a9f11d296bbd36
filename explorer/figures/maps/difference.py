"""The difference between two attention maps, on one diverging scale centred on zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.cells import colour_bar
from explorer.figures.base.grid import token_grid
from explorer.figures.maps.heatmap import LARGEST, LEGEND, hatching

Pair = tuple[int | None, int | None]
_ENDS = 40
ROOM = 8.5
"""Widest label, in multiples of its font size; a label may hold names from both sides."""


def scale_end(most: float) -> float:
    """The end of a diverging scale on both sides: the next tenth above the largest difference, at most 1."""
    return min(max(math.ceil(10 * most - 1e-6) / 10, 0.1), 1.0)


def merged_names(first: Sequence[str], second: Sequence[str], pairs: Sequence[Pair]) -> list[str]:
    """Names of aligned tokens: `A: …` or `B: …` if one side lacks the token, both names if they differ."""
    a, b = map(labels.pieces, (first, second))

    def name(pair: Pair) -> str:
        i, j = pair
        if i is None or j is None:
            return f"B: {b[j]}" if j is not None else f"A: {a[i]}" if i is not None else ""
        return a[i] if a[i] == b[j] else f"{a[i]} | {b[j]}"

    return [name(pair) for pair in pairs]


def difference_map(
    first: np.ndarray,  # (rows, columns) weights of side A
    second: np.ndarray,  # the same for side B
    compared: np.ndarray,  # (rows, columns), True for cells whose difference means something
    rows: Sequence[str],  # names of the rows
    columns: Sequence[str],  # names of the columns
    # (rows,) total variation distance of each row, NaN if it has none; written at its end
    distances: np.ndarray,
    end: float,  # the scale runs from −end to end
    titles: tuple[str, str],  # titles of the rows and of the columns
    # width and height in px of a map with usual labels; longer names and distances enlarge it
    size: int = style.LARGE,
    room: float = ROOM,  # widest label, in multiples of its font size
) -> go.Figure:
    """Draws first − second; cells that were not compared are hatched.

    Raises:
        ValueError: There are more than 64 x 64 cells.
    """
    if max(compared.shape) > LARGEST:
        raise ValueError(f"A map shows at most {LARGEST} x {LARGEST} cells: ask for a window.")
    values = np.where(compared, first - second, 0).astype(np.float32)
    cells = {
        "type": "heatmap",
        "z": values,
        "zmin": -end,
        "zmax": end,
        "colorscale": style.diverging(),
        "colorbar": _scale(end),
        "customdata": np.stack([first, second], axis=-1).astype(np.float32),
        "text": _hover(rows, columns, compared),
        "hovertemplate": "%{text}<br>A %{customdata[0]:.3f} · B %{customdata[1]:.3f} · A − B %{z:.3f}"
        "<extra></extra>",
    }
    layout = token_grid(rows, columns, titles, size, room)
    layout |= _row_ends(layout, distances)
    below = {"b": layout["margin"]["b"] + LEGEND}
    layout |= {"height": layout["height"] + LEGEND, "margin": layout["margin"] | below}
    hatched = hatching(compared)
    unseen = {"type": "scatter", "x": [0], "y": [None], "yaxis": "y2", "hoverinfo": "skip"}
    return style.figure(style.spec([cells, *([] if hatched is None else [hatched]), unseen], layout))


def _hover(rows: Sequence[str], columns: Sequence[str], compared: np.ndarray) -> list[list[str]]:
    return [
        [
            labels.escape(f"{row}, key {column}{'' if compared[i, j] else ' (not compared)'}")
            for j, column in enumerate(columns)
        ]
        for i, row in enumerate(rows)
    ]


def _scale(end: float) -> dict[str, Any]:
    ticks = {-end: f"−{end:.1f}", 0.0: "0", end: f"{end:.1f}"}
    return colour_bar(ticks, 0.7, 9, "weight, A − B") | {"ypad": 4}


def _row_ends(layout: dict[str, Any], distances: np.ndarray) -> dict[str, Any]:
    """A second axis on the right with the distance of every row."""
    down = layout["yaxis"]
    ends = ["" if np.isnan(distances[i]) else f"{distances[i]:.2f}" for i in down["tickvals"]]
    axis = {key: value for key, value in down.items() if key != "ticktext"}
    axis |= {"overlaying": "y", "side": "right", "ticktext": ends}
    heading: dict[str, Any] = {"text": "TV", "showarrow": False, "font": {"size": 9}, "xshift": 4}
    heading |= {"xref": "x domain", "yref": "paper", "x": 1, "y": 1, "xanchor": "left", "yanchor": "bottom"}
    return {
        "yaxis2": axis,
        "width": layout["width"] + _ENDS - layout["margin"]["r"],
        "margin": layout["margin"] | {"r": _ENDS},
        "annotations": [*layout["annotations"], heading],
    }
