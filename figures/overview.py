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
    width: int = 560,
) -> go.Figure:
    """Draws every head of a kind in one heatmap, the selected one framed.

    A click on a tile gives a point whose `customdata` is (layer, head), from 0.

    Args:
        tiles: the pooled heads, by layer and head.
        kind: encoder, decoder or cross.
        selected: layer and head of the frame, from 0.
        notes: what the hover text says of a head, by (layer, head).
        width: in px; the height follows from the number of layers.
    """
    return style.figure(overview_spec(tiles, kind, selected, notes, width))


def overview_spec(
    tiles: Sequence[Sequence[Tile]],
    kind: str,
    selected: tuple[int, int],
    notes: Mapping[tuple[int, int], str] | None = None,
    width: int = 560,
) -> dict[str, Any]:
    """The same figure as plain values."""
    rows, columns = tiles[0][0].values.shape
    gap = max(1, round(GAP * max(rows, columns)))
    xs = [head * (columns + gap) + (columns - 1) / 2 for head in range(len(tiles[0]))]
    ys = [layer * (rows + gap) + (rows - 1) / 2 for layer in range(len(tiles))]
    cells = {"type": "heatmap", "z": _canvas(tiles, gap), "zmin": 0, "zmax": 255, "showscale": False}
    cells |= {"colorscale": style.scale(kind), "hoverinfo": "skip"}
    across = _axis([f"H{labels.count(i)}" for i in range(len(xs))], xs, columns + gap, gap)
    down = _axis([f"L{labels.count(i)}" for i in range(len(ys))], ys, rows + gap, gap)
    layer, head = selected
    frames = [_frame(x, y, rows, columns, "rgba(128,128,128,.45)", 1) for y in ys for x in xs]
    frames.append(_frame(xs[head], ys[layer], rows + gap, columns + gap, style.HUES[kind], 2.5))
    side = (width - 40) / len(xs)
    layout = {
        "xaxis": across | {"side": "top"},
        "yaxis": down | {"range": down["range"][::-1]},
        "shapes": frames,
        "height": round(40 + len(ys) * side),
        "margin": {"l": 30, "t": 26, "r": 4, "b": 4},
        "dragmode": False,
        "clickmode": "event+select",
        "hovermode": "closest",
    }
    return style.spec([cells, _targets(xs, ys, 0.9 * side, notes or {})], layout)


def _targets(
    xs: list[float], ys: list[float], side: float, notes: Mapping[tuple[int, int], str]
) -> dict[str, Any]:
    """Invisible squares over the tiles: a heatmap itself answers no click in Streamlit."""
    places = [(layer, head) for layer in range(len(ys)) for head in range(len(xs))]
    unseen = {"marker": {"opacity": 0}}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [xs[head] for _, head in places],
        "y": [ys[layer] for layer, _ in places],
        "customdata": places,
        "hovertext": [labels.escape(_hover(*place, notes)).replace("\n", "<br>") for place in places],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"symbol": "square", "size": side, "opacity": 0, "color": "rgba(128,128,128,1)"},
        "selected": unseen,
        "unselected": unseen,
    }


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
