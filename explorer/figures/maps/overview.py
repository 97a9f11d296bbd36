"""All heads of one kind as one tiled map: rows are layers, columns are heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from plotly.colors import sample_colorscale

from explorer.figures.base import labels, style
from explorer.figures.base.cells import hover, targets
from explorer.figures.maps.heatmap import levels, pool

LARGEST_TILE = 32
GAP = 0.12
_STRIP = "cividis"


@dataclass(frozen=True)
class Tile:
    """One head, pooled to at most 32 x 32 colour levels, so that long sentences stay small."""

    values: np.ndarray
    rows: int
    columns: int

    @classmethod
    def of(cls, weights: np.ndarray, mask: np.ndarray, scale: str = "linear") -> Tile:
        """Pools one head's weights (queries, keys); masked cells get level 0."""
        return cls(*pool(levels(weights, mask, scale), LARGEST_TILE))

    @property
    def steps(self) -> tuple[int, int]:
        """Rows and columns of the matrix that a cell stands for."""
        return self.rows, self.columns

    @property
    def pooled(self) -> bool:
        """Whether a cell of the tile stands for more than one cell of the matrix."""
        return self.rows > 1 or self.columns > 1


@dataclass(frozen=True)
class Measure:
    """A statistic, drawn as a strip under each tile, coloured from its smallest value to its largest."""

    values: Sequence[Sequence[float]]  # by layer and head; NaN if a head has none
    texts: Sequence[Sequence[str]]  # each value as text

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        known = [value for layer in self.values for value in layer if value == value]
        return min(known, default=0.0), max(known, default=0.0)

    def color(self, layer: int, head: int) -> str:
        """The colour of a head's strip; transparent for a head without a value."""
        low, high = self.span
        value = self.values[layer][head]
        if value != value:
            return "rgba(0,0,0,0)"
        return str(sample_colorscale(_STRIP, [(value - low) / ((high - low) or 1.0)])[0])

    def legend(self) -> list[tuple[str, str]]:
        """A few values with their colours, for a legend."""
        low, high = self.span
        shares = (0, 0.5, 1) if high > low else (0,)
        return [
            (f"{low + share * (high - low):.2f}", str(sample_colorscale(_STRIP, [share])[0]))
            for share in shares
        ]


def _canvas(tiles: Sequence[Sequence[Tile]], gap: int) -> np.ndarray:
    height, width = tiles[0][0].values.shape
    canvas = np.zeros((len(tiles) * (height + gap) - gap, len(tiles[0]) * (width + gap) - gap), np.uint8)
    for layer, row in enumerate(tiles):
        for head, tile in enumerate(row):
            top, left = layer * (height + gap), head * (width + gap)
            canvas[top : top + height, left : left + width] = tile.values
    return canvas


def overview_spec(
    tiles: Sequence[Sequence[Tile]],
    kind: str,
    selected: tuple[int, int],
    notes: Mapping[tuple[int, int], str] | None = None,
    order: Sequence[Sequence[int]] | None = None,
    measure: Measure | None = None,
    width: int = 560,
) -> dict[str, Any]:
    """Draws every head of a kind in one heatmap and frames the selected head.

    A click on a tile gives a point whose `customdata` is (layer, head), from 0.

    Args:
        tiles: the pooled heads, by layer and head.
        kind: encoder, decoder or cross.
        selected: layer and head to frame, from 0.
        notes: hover text of a head, by (layer, head).
        order: for each layer its heads (from 0) in the order of the columns; None orders them by number.
        measure: a statistic that colours a strip under each tile.
        width: in px; the height follows from the number of layers.
    """
    rows, columns = tiles[0][0].values.shape
    plain = order is None and measure is None
    gap = max(1, round((GAP if plain else 3 * GAP) * max(rows, columns)))
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
    frames += [] if measure is None else _strips(xs, ys, numbers, measure, rows, columns, gap)
    lift = 0.0 if plain else 0.3 * gap
    x, y = xs[list(numbers[layer]).index(head)], ys[layer] - lift
    frames.append(_frame(x, y, rows + gap + 2 * lift, columns + gap, style.HUES[kind], 2.5))
    side = (width - 40) / len(xs)
    layout = {
        "xaxis": across | {"side": "top"},
        "yaxis": down | {"range": down["range"][::-1]},
        "shapes": frames,
        "annotations": [] if plain else _names(xs, ys, numbers, rows / 2, order is not None, measure),
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
    """Invisible squares over the tiles, because Streamlit reports no clicks on a heatmap."""
    places = [(layer, head) for layer, line in enumerate(numbers) for head in line]
    texts = [hover(_hover(*place, notes)) for place in places]
    return targets(xs * len(ys), [y for y in ys for _ in xs], places, texts, side)


def _names(
    xs: list[float],
    ys: list[float],
    numbers: Sequence[Sequence[int]],
    up: float,
    ordered: bool,
    measure: Measure | None,
) -> list[dict[str, Any]]:
    """Texts over the tiles: the head, if the columns no longer name it, and its value."""
    look = {"showarrow": False, "font": {"size": 9}, "yanchor": "bottom", "yshift": -2}
    names = []
    for layer, (y, line) in enumerate(zip(ys, numbers, strict=True)):
        for x, head in zip(xs, line, strict=True):
            parts = [f"H{labels.count(head)}"] if ordered else []
            parts += [] if measure is None else [measure.texts[layer][head]]
            names.append({"text": labels.escape(" · ".join(parts)), "x": x, "y": y - up, **look})
    return names


def _strips(
    xs: list[float],
    ys: list[float],
    numbers: Sequence[Sequence[int]],
    measure: Measure,
    rows: int,
    columns: int,
    gap: int,
) -> list[dict[str, Any]]:
    """A filled strip under each tile."""
    height = 0.28 * gap
    return [
        _frame(x, y + rows / 2 + height / 2, height, columns, "rgba(0,0,0,0)", 0)
        | {"fillcolor": measure.color(layer, head)}
        for layer, (y, line) in enumerate(zip(ys, numbers, strict=True))
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
