"""All heads of one kind as one tiled map: rows are layers, columns are heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from figures import labels, style
from figures.heatmap import levels, pool

LARGEST_TILE = 32
GAP = 0.12


@dataclass(frozen=True)
class Tile:
    """One head, pooled to at most 32 x 32 colour levels, so that long sentences stay small."""

    values: np.ndarray
    rows: int
    columns: int

    @classmethod
    def of(cls, weights: np.ndarray, mask: np.ndarray) -> Tile:
        """Pools one head's weights (queries, keys), masked cells at level 0."""
        return cls(*pool(levels(weights, mask), LARGEST_TILE))

    @property
    def pooled(self) -> bool:
        """Whether a cell of the tile stands for more than one cell of the matrix."""
        return self.rows > 1 or self.columns > 1


def _canvas(tiles: Sequence[Sequence[Tile]], gap: int) -> np.ndarray:
    height, width = tiles[0][0].values.shape
    canvas = np.zeros((len(tiles) * (height + gap) - gap, len(tiles[0]) * (width + gap) - gap), np.uint8)
    for layer, row in enumerate(tiles):
        for head, tile in enumerate(row):
            top, left = layer * (height + gap), head * (width + gap)
            canvas[top : top + height, left : left + width] = tile.values
    return canvas


def overview(
    tiles: Sequence[Sequence[Tile]],
    kind: str,
    selected: tuple[int, int],
    notes: Mapping[tuple[int, int], str] | None = None,
    order: Sequence[Sequence[int]] | None = None,
    width: int = 560,
) -> go.Figure:
    """Draws every head of a kind in one heatmap, the selected one framed.

    A click on a tile gives a point whose `customdata` is (layer, head), from 0.

    Args:
        tiles: the pooled heads, by layer and head.
        kind: encoder, decoder or cross.
        selected: layer and head of the frame, from 0.
        notes: what the hover text says of a head, by (layer, head).
        order: for each layer its heads (from 0) in the order of the columns; None keeps them by number.
        width: in px; the height follows from the number of layers.
    """
    return style.figure(overview_spec(tiles, kind, selected, notes, order, width))


def overview_spec(
    tiles: Sequence[Sequence[Tile]],
    kind: str,
    selected: tuple[int, int],
    notes: Mapping[tuple[int, int], str] | None = None,
    order: Sequence[Sequence[int]] | None = None,
    width: int = 560,
) -> dict[str, Any]:
    """The same figure as plain values."""
    rows, columns = tiles[0][0].values.shape
    gap = max(1, round((GAP if order is None else 2.5 * GAP) * max(rows, columns)))
    numbers = order or [range(len(layer)) for layer in tiles]
    placed = [[layer[head] for head in line] for layer, line in zip(tiles, numbers, strict=True)]
    xs = [head * (columns + gap) + (columns - 1) / 2 for head in range(len(tiles[0]))]
    ys = [layer * (rows + gap) + (rows - 1) / 2 for layer in range(len(tiles))]
    cells = {"type": "heatmap", "z": _canvas(placed, gap), "zmin": 0, "zmax": 255, "showscale": False}
    cells |= {"colorscale": style.scale(kind), "hoverinfo": "skip"}
    names = [f"H{labels.count(i)}" if order is None else "" for i in range(len(xs))]
    across = _axis(names, xs, columns + gap, gap)
    down = _axis([f"L{labels.count(i)}" for i in range(len(ys))], ys, rows + gap, gap)
    layer, head = selected
    frames = [_frame(x, y, rows, columns, "rgba(128,128,128,.45)", 1) for y in ys for x in xs]
    frames.append(
        _frame(
            xs[list(numbers[layer]).index(head)], ys[layer], rows + gap, columns + gap, style.HUES[kind], 2.5
        )
    )
    side = (width - 40) / len(xs)
    layout = {
        "xaxis": across | {"side": "top"},
        "yaxis": down | {"range": down["range"][::-1]},
        "shapes": frames,
        "annotations": [] if order is None else _numbers(xs, ys, numbers, rows / 2),
        "height": round(40 + len(ys) * side),
        "margin": {"l": 30, "t": 26, "r": 4, "b": 4},
        "dragmode": False,
        "clickmode": "event+select",
        "hovermode": "closest",
    }
    return style.spec([cells, _targets(xs, ys, numbers, 0.9 * side, notes or {})], layout)


def _targets(
    xs: list[float],
    ys: list[float],
    numbers: Sequence[Sequence[int]],
    side: float,
    notes: Mapping[tuple[int, int], str],
) -> dict[str, Any]:
    """Invisible squares over the tiles: a heatmap itself answers no click in Streamlit."""
    places = [(layer, head) for layer, line in enumerate(numbers) for head in line]
    unseen = {"marker": {"opacity": 0}}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": xs * len(ys),
        "y": [y for y in ys for _ in xs],
        "customdata": places,
        "hovertext": [labels.escape(_hover(*place, notes)).replace("\n", "<br>") for place in places],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"symbol": "square", "size": side, "opacity": 0, "color": "rgba(128,128,128,1)"},
        "selected": unseen,
        "unselected": unseen,
    }


def _numbers(
    xs: list[float], ys: list[float], numbers: Sequence[Sequence[int]], up: float
) -> list[dict[str, Any]]:
    """The name of each head in a corner of its tile, where the columns no longer say it."""
    look = {"showarrow": False, "font": {"size": 9}, "yanchor": "bottom", "yshift": -2}
    return [
        {"text": f"H{labels.count(head)}", "x": x, "y": y - up, **look}
        for y, line in zip(ys, numbers, strict=True)
        for x, head in zip(xs, line, strict=True)
    ]


def _hover(layer: int, head: int, notes: Mapping[tuple[int, int], str]) -> str:
    name = f"layer {labels.count(layer)}, head {labels.count(head)}"
    note = notes.get((layer, head))
    return f"{name}\n{note}" if note else name


def _axis(texts: list[str], centres: list[float], pitch: int, gap: int) -> dict[str, Any]:
    return {
        "tickmode": "array",
        "tickvals": centres,
        "ticktext": texts,
        "range": [-0.5 - 0.7 * gap, len(centres) * pitch - 0.5 - 0.3 * gap],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
        "ticks": "",
        "tickfont": {"size": 11},
    }


def _frame(x: float, y: float, height: float, width: float, color: str, line: float) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": x - width / 2,
        "x1": x + width / 2,
        "y0": y - height / 2,
        "y1": y + height / 2,
        "line": {"color": color, "width": line},
    }
