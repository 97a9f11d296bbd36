"""All heads of one kind as one tiled map: rows are layers, columns are heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    height, length = tiles[0][0].values.shape
    gap = max(1, round(GAP * max(height, length)))
    canvas = _canvas(tiles, gap)
    figure = style.bare(
        go.Figure(
            go.Heatmap(
                z=canvas, zmin=0, zmax=255, colorscale=style.scale(kind), showscale=False, hoverinfo="skip"
            )
        )
    )
    centres_x = [head * (length + gap) + (length - 1) / 2 for head in range(len(tiles[0]))]
    centres_y = [layer * (height + gap) + (height - 1) / 2 for layer in range(len(tiles))]
    side = (width - 40) / len(tiles[0]) * 0.9
    figure.add_trace(_targets(centres_x, centres_y, side, notes or {}))
    layer, head = selected
    figure.update_layout(
        xaxis=_axis(
            [f"H{labels.count(i)}" for i in range(len(centres_x))], centres_x, canvas.shape[1], 0.7 * gap
        )
        | {"side": "top"},
        yaxis=_axis(
            [f"L{labels.count(i)}" for i in range(len(centres_y))], centres_y, canvas.shape[0], 0.7 * gap
        )
        | {"autorange": "reversed", "range": None},
        shapes=[
            *_frames(centres_x, centres_y, height, length),
            _frame(centres_x[head], centres_y[layer], height + gap, length + gap, style.HUES[kind], 2.5),
        ],
        height=round(60 + len(tiles) * side / 0.9),
        margin={"l": 30, "t": 26, "r": 4, "b": 4},
        dragmode=False,
        clickmode="event+select",
        hovermode="closest",
    )
    return figure


def _targets(
    xs: list[float], ys: list[float], side: float, notes: Mapping[tuple[int, int], str]
) -> go.Scatter:
    """Invisible squares over the tiles: a heatmap itself answers no click in Streamlit."""
    places = [(layer, head) for layer in range(len(ys)) for head in range(len(xs))]
    text = [labels.escape(_hover(layer, head, notes)).replace("\n", "<br>") for layer, head in places]
    return go.Scatter(
        x=[xs[head] for _, head in places],
        y=[ys[layer] for layer, _ in places],
        mode="markers",
        customdata=places,
        hovertext=text,
        hovertemplate="%{hovertext}<extra></extra>",
        marker={"symbol": "square", "size": side, "opacity": 0, "color": "rgba(128,128,128,1)"},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
    )


def _hover(layer: int, head: int, notes: Mapping[tuple[int, int], str]) -> str:
    name = f"layer {labels.count(layer)}, head {labels.count(head)}"
    note = notes.get((layer, head))
    return f"{name}\n{note}" if note else name


def _axis(texts: list[str], centres: list[float], length: int, margin: float) -> dict[str, object]:
    return {
        "tickmode": "array",
        "tickvals": centres,
        "ticktext": texts,
        "range": [-margin - 0.5, length - 0.5 + margin],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "automargin": False,
        "ticks": "",
        "tickfont": {"size": 11},
    }


def _frames(xs: list[float], ys: list[float], height: float, width: float) -> list[dict[str, object]]:
    return [_frame(x, y, height, width, "rgba(128,128,128,.45)", 1) for y in ys for x in xs]


def _frame(x: float, y: float, height: float, width: float, color: str, line: float) -> dict[str, object]:
    return {
        "type": "rect",
        "x0": x - width / 2,
        "x1": x + width / 2,
        "y0": y - height / 2,
        "y1": y + height / 2,
        "line": {"color": color, "width": line},
    }
