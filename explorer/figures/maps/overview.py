"""Overviews: all heads of one kind as one tiled map, and a long matrix, pooled and named so."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from plotly.colors import sample_colorscale

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec
from explorer.figures.maps.heatmap import LARGEST, levels, pool

Head = tuple[int, int]
"""Layer and head, from 0."""
Order = Sequence[Sequence[int]]
"""The heads of each layer in an order."""
LARGEST_TILE = 32
GAP = 0.12
_STRIP, _CLEAR = "cividis", "rgba(0,0,0,0)"


@dataclass(frozen=True)
class Tile:
    """One head, pooled to at most 32 x 32 colour levels, so that long sentences stay small."""

    values: np.ndarray
    rows: int  # of the matrix that a cell stands for
    columns: int

    @classmethod
    def of(cls, weights: np.ndarray, mask: np.ndarray, scale: str = "linear") -> Tile:
        """Pools one head's weights (queries, keys); masked cells get level 0."""
        return cls.at_most(LARGEST_TILE, weights, mask, scale)

    @classmethod
    def at_most(
        cls, side: int, weights: np.ndarray, mask: np.ndarray, scale: str = "linear"
    ) -> Tile:
        """Pools to so many rows and columns at most; the largest weight has the largest level."""
        seen = np.where(mask & ~np.isnan(weights), weights, np.float32(-np.inf))
        largest, rows, columns = pool(seen, side)
        return cls(levels(largest, largest > -np.inf, scale), rows, columns)


@dataclass(frozen=True)
class Measure:
    """A statistic as a strip under each tile, coloured from its smallest value to its largest."""

    texts: list[list[str]]  # each value as text, by layer and head; empty if a head has none
    colors: list[list[str]]  # of the strips; transparent if a head has no value
    legend: list[tuple[str, str]]  # a few values with their colours

    @classmethod
    def of(cls, values: Sequence[Sequence[float]]) -> Measure:
        """Texts and colours of values by layer and head; NaN is none."""
        known = [value for layer in values for value in layer if not math.isnan(value)]
        low = min(known, default=0.0)
        span = max(known, default=0.0) - low
        shares = [[(value - low) / (span or 1.0) for value in layer] for layer in values]
        marked = (0, 0.5, 1) if span > 0 else (0,)
        marks = sample_colorscale(_STRIP, marked)
        return cls(
            texts=[
                ["" if math.isnan(value) else f"{value:.2f}" for value in layer] for layer in values
            ],
            colors=[[_strip_colour(share) for share in layer] for layer in shares],
            legend=[
                (f"{low + share * span:.2f}", mark)
                for share, mark in zip(marked, marks, strict=True)
            ],
        )


def _strip_colour(share: float) -> str:
    """The colour of a value by its share of the way to the largest; no colour for NaN."""
    if math.isnan(share):
        return _CLEAR
    return str(sample_colorscale(_STRIP, [share])[0])


@dataclass(frozen=True)
class _Grid:
    """Where the tiles stand, in cells of the canvas."""

    rows: int  # of a tile
    columns: int
    gap: int  # between tiles
    xs: Sequence[float]  # the middles of the columns of tiles
    ys: Sequence[float]  # the middles of the rows of tiles
    places: Mapping[Head, tuple[float, float]]  # the middle of each head's tile

    @classmethod
    def of(cls, tiles: Sequence[Sequence[Tile]], order: Order | None, share: float) -> _Grid:
        """The grid of heads in an order, with a gap of so great a share of a tile."""
        rows, columns = tiles[0][0].values.shape
        gap = max(1, round(share * max(rows, columns)))
        xs = [place * (columns + gap) + (columns - 1) / 2 for place in range(len(tiles[0]))]
        ys = [layer * (rows + gap) + (rows - 1) / 2 for layer in range(len(tiles))]
        heads = order or [range(len(layer)) for layer in tiles]
        places = {
            (layer, head): (xs[place], ys[layer])
            for layer, line in enumerate(heads)
            for place, head in enumerate(line)
        }
        return cls(rows=rows, columns=columns, gap=gap, xs=xs, ys=ys, places=places)

    def canvas(self, tiles: Sequence[Sequence[Tile]]) -> np.ndarray:
        """The levels of all tiles in their places."""
        high = len(self.ys) * (self.rows + self.gap) - self.gap
        wide = len(self.xs) * (self.columns + self.gap) - self.gap
        canvas = np.zeros((high, wide), np.uint8)
        for (layer, head), (x, y) in self.places.items():
            top = round(y - (self.rows - 1) / 2)
            left = round(x - (self.columns - 1) / 2)
            cells = tiles[layer][head].values
            canvas[top : top + self.rows, left : left + self.columns] = cells
        return canvas

    def frames(self) -> list[Spec]:
        """A thin frame around each tile."""
        colour = "rgba(128,128,128,.45)"
        return [
            _frame(place, self.rows, self.columns, colour=colour, line=1)
            for place in self.places.values()
        ]

    def strips(self, measure: Measure) -> list[Spec]:
        """What colours the statistic of each head under its tile."""
        strips = []
        for (layer, head), (x, y) in self.places.items():
            middle = (x, y + self.rows / 2 + 0.14 * self.gap)
            strip = _frame(middle, 0.28 * self.gap, self.columns, colour=_CLEAR, line=0)
            strips.append(strip | {"fillcolor": measure.colors[layer][head]})
        return strips

    def ring(self, head: Head, hue: str, lift: float) -> Spec:
        """The frame of the chosen head, which begins so much higher."""
        x, y = self.places[head]
        high = self.rows + self.gap + 2 * lift
        return _frame((x, y - lift), high, self.columns + self.gap, colour=hue, line=2.5)

    def texts(self, names: Mapping[Head, str]) -> list[Spec]:
        """A text above each tile."""
        look: Spec = {"yanchor": "bottom", "yshift": -2}
        return [
            plot.note(labels.escape(names[head]), x, y - self.rows / 2, 9, **look)
            for head, (x, y) in self.places.items()
        ]

    def targets(self, notes: Mapping[Head, str], side: float) -> Spec:
        """What takes pointer and click on each tile, with its hover text."""
        across, down = zip(*self.places.values(), strict=True)
        heads = list(self.places)
        return plot.targets(across, down, heads, [notes[head] for head in heads], side)


def overview_spec(
    tiles: Sequence[Sequence[Tile]],
    kind: str,
    selected: Head,
    notes: Mapping[Head, str] | None = None,  # the hover texts of heads
    order: Order | None = None,  # for each layer its heads in the order of the columns
    measure: Measure | None = None,  # what colours a strip under each tile
    width: int = 560,
) -> Spec:
    """Every head of a kind in one heatmap, one framed.

    A click's `customdata` is (layer, head), from 0.
    """
    plain = order is None and measure is None
    grid = _Grid.of(tiles, order, GAP if plain else 3 * GAP)
    frames = grid.frames()
    texts = list[Spec]()
    lift = 0.0
    if not plain:
        lift = 0.3 * grid.gap
        texts = grid.texts(_head_texts(grid.places, order, measure))
    if measure is not None:
        frames += grid.strips(measure)
    frames.append(grid.ring(selected, style.HUES[kind], lift))
    side = (width - 40) / len(grid.xs)
    across, down = _axes(grid, named=order is None)
    return plot.spec(
        [
            plot.heat(grid.canvas(tiles), (0, 255), style.SCALES_OF[kind], hoverinfo="skip"),
            grid.targets(_head_notes(grid.places, notes or {}), 0.9 * side),
        ],
        across,
        down,
        round(40 + len(grid.ys) * side),
        (30, 26, 4, 4),
        shapes=frames,
        annotations=texts,
        **plot.CLICKS,
    )


def _head_texts(
    heads: Iterable[Head], order: Order | None, measure: Measure | None
) -> dict[Head, str]:
    """What stands above each tile: its head, where the columns do not name it, and its statistic."""
    texts = {}
    for layer, head in heads:
        parts = list[str]()
        if order:
            parts.append(f"H{labels.count(head)}")
        if measure is not None:
            parts.append(measure.texts[layer][head])
        texts[layer, head] = " · ".join(parts)
    return texts


def _head_notes(heads: Iterable[Head], notes: Mapping[Head, str]) -> dict[Head, str]:
    """The hover text of each tile: layer and head over its note."""
    texts = {}
    for layer, head in heads:
        name = f"layer {labels.count(layer)}, head {labels.count(head)}"
        note = notes.get((layer, head))
        texts[layer, head] = f"{name}\n{note}" if note else name
    return texts


def _axes(grid: _Grid, *, named: bool) -> tuple[Spec, Spec]:
    """The axes of heads, if columns are named, and of layers."""
    heads = [""] * len(grid.xs)
    if named:
        heads = [f"H{labels.count(head)}" for head in range(len(grid.xs))]
    layers = [f"L{labels.count(layer)}" for layer in range(len(grid.ys))]
    across = _axis(heads, grid.xs, grid.columns + grid.gap, grid.gap)
    down = _axis(layers, grid.ys, grid.rows + grid.gap, grid.gap)
    down["range"].reverse()
    return across | {"side": "top"}, down


def _axis(texts: Sequence[str], centres: Sequence[float], pitch: int, gap: int) -> Spec:
    ends = [-0.5 - 0.7 * gap, len(centres) * pitch - 0.5 - 0.3 * gap]
    ticks = {"tickmode": "array", "tickvals": centres, "ticktext": texts, "tickfont": {"size": 11}}
    return {**plot.STILL, **ticks, "range": ends}


def _frame(
    middle: tuple[float, float], height: float, width: float, *, colour: str, line: float
) -> Spec:
    """A frame around a point."""
    x, y = middle
    return plot.rectangle(
        x - width / 2, x + width / 2, y - height / 2, y + height / 2, colour=colour, width=line
    )


def pooled_spec(
    weights: np.ndarray, mask: np.ndarray, kind: str, size: int = style.SIZE, scale: str = "linear"
) -> Spec:
    """A long matrix as an overview: each cell is the largest weight among those it stands for."""
    pooled, rows, columns = pool(levels(weights, mask, scale), LARGEST)
    place: Spec = {"x0": columns / 2 + 0.5, "dx": columns, "y0": rows / 2 + 0.5, "dy": rows}
    hover = "near query %{y:.0f}, key %{x:.0f}<extra></extra>"
    cells = plot.heat(pooled, (0, 255), style.SCALES_OF[kind], **place, hovertemplate=hover)
    frame = plot.STILL | {"constrain": "domain", "tickfont": {"size": 10}, "nticks": 6}
    across: Spec = {
        "side": "top",
        "title": {"text": "key", "font": {"size": 10}},
        "constraintoward": "left",
        "range": [0.5, weights.shape[1] + 0.5],
    }
    down: Spec = {
        "scaleanchor": "x",
        "title": {"text": "query", "font": {"size": 10}},
        "constraintoward": "top",
        "range": [weights.shape[0] + 0.5, 0.5],
    }
    return plot.spec([cells], frame | across, frame | down, size, (50, 40, 6, 6), width=size)


def pooled_note(weights: np.ndarray) -> str:
    """Says what one cell of the overview stands for."""
    rows, columns = (-(-length // LARGEST) for length in weights.shape)
    if max(rows, columns) <= 1:
        return "every cell"
    return f"maximum over {rows}×{columns} cells"
