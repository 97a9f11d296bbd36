"""The difference between two attention maps, on one diverging scale centred on zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.grid import LEGEND, row_ends, token_grid
from explorer.figures.maps.heatmap import LARGEST, cell_texts, hatching

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
    """Draws first − second; cells that were not compared are hatched. ValueError beyond 64 x 64 cells."""
    if max(compared.shape) > LARGEST:
        raise ValueError(f"A map shows at most {LARGEST} x {LARGEST} cells: ask for a window.")
    ticks = {-end: f"−{end:.1f}", 0.0: "0", end: f"{end:.1f}"}
    told = "%{text}<br>A %{customdata[0]:.3f} · B %{customdata[1]:.3f} · A − B %{z:.3f}<extra></extra>"
    cells = plot.heat(
        np.where(compared, first - second, 0), (-end, end), style.diverging(), hovertemplate=told
    ) | {
        "showscale": True,
        "colorbar": plot.colour_bar(ticks, 0.7, 9, "weight, A − B", air=4),
        "customdata": np.stack([first, second], axis=-1).astype(np.float32),
        "text": cell_texts(rows, [f"key {column}" for column in columns], compared, " (not compared)"),
    }
    layout = token_grid(rows, columns, titles, size, room, LEGEND)
    layout["width"] += _ENDS - layout["margin"]["r"]
    texts = ["" if np.isnan(each) else f"{each:.2f}" for each in distances]
    unseen = row_ends(layout, texts, "TV", _ENDS)
    return style.figure(style.spec([cells, *hatching(compared), unseen], layout))
