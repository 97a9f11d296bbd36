"""Overviews: all heads of one kind as one tiled map, and a long matrix, pooled and labelled as
pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from plotly.colors import sample_colorscale

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec
from explorer.figures.maps.heatmap import LARGEST, levels, pool

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
        return cls(*pool(levels(weights, mask, scale), LARGEST_TILE))


@dataclass(frozen=True)
class Measure:
    """A statistic, drawn as a strip under each tile, coloured from its smallest value to its
    largest."""

    texts: list[list[str]]  # each value as text, by layer and head; empty if a head has none
    colors: list[list[str]]  # of the strips; transparent if a head has no value
    legend: list[tuple[str, str]]  # a few values with their colours

    @classmethod
    def of(cls, values: Sequence[Sequence[float]]) -> Measure:
        """Texts and colours of values by layer and head; NaN is none."""
        known = [value for layer in values for value in layer if value == value]
        low = min(known, default=0.0)
        high = max(known, default=0.0)
        texts, colors = ([["" for _ in layer] for layer in values] for _ in range(2))
        for i, layer in enumerate(values):
            for j, value in enumerate(layer):
                texts[i][j] = "" if value != value else f"{value:.2f}"
                share = [(value - low) / ((high - low) or 1.0)]
                colors[i][j] = _CLEAR if value != value else sample_colorscale(_STRIP, share)[0]
        shares = (0, 0.5, 1) if high > low else (0,)
        marks = sample_colorscale(_STRIP, shares)
        named = [f"{low + share * (high - low):.2f}" for share in shares]
        return cls(texts, colors, list(zip(named, marks, strict=True)))


def overview_spec(
    tiles: Sequence[Sequence[Tile]],
    kind: str,
    selected: tuple[int, int],
    notes: Mapping[tuple[int, int], str] | None = None,  # the hover texts of heads
    order: Sequence[Sequence[int]]
    | None = None,  # for each layer its heads in the order of the columns
    measure: Measure | None = None,  # what colours a strip under each tile
    width: int = 560,
) -> Spec:
    """Every head of a kind in one heatmap, one framed; a click's `customdata` is (layer, head),
    from 0."""
    rows, columns = tiles[0][0].values.shape
    plain = order is None and measure is None
    gap = max(1, round((GAP if plain else 3 * GAP) * max(rows, columns)))
    numbers = order or [range(len(layer)) for layer in tiles]
    xs = [head * (columns + gap) + (columns - 1) / 2 for head in range(len(tiles[0]))]
    ys = [layer * (rows + gap) + (rows - 1) / 2 for layer in range(len(tiles))]
    places = {
        (i, j): (xs[at], ys[i]) for i, line in enumerate(numbers) for at, j in enumerate(line)
    }
    canvas = np.zeros((len(ys) * (rows + gap) - gap, len(xs) * (columns + gap) - gap), np.uint8)
    frames = [_frame(*at, rows, columns, "rgba(128,128,128,.45)", 1) for at in places.values()]
    texts = []
    look = {"yanchor": "bottom", "yshift": -2}
    for (i, j), (x, y) in places.items():
        top = round(y - (rows - 1) / 2)
        left = round(x - (columns - 1) / 2)
        canvas[top : top + rows, left : left + columns] = tiles[i][j].values
        parts = [f"H{labels.count(j)}"] if order else []  # the columns no longer name it
        if measure is not None:
            strip = _frame(x, y + rows / 2 + 0.14 * gap, 0.28 * gap, columns, _CLEAR, 0)
            frames.append(strip | {"fillcolor": measure.colors[i][j]})
            parts.append(measure.texts[i][j])
        texts.append(plot.note(labels.escape(" · ".join(parts)), x, y - rows / 2, 9, **look))
    lift = 0.0 if plain else 0.3 * gap
    x, y = places[selected]
    frames.append(_frame(x, y - lift, rows + gap + 2 * lift, columns + gap, style.HUES[kind], 2.5))
    names = [f"H{labels.count(i)}" if order is None else "" for i in range(len(xs))]
    down = _axis([f"L{labels.count(i)}" for i in range(len(ys))], ys, rows + gap, gap)
    side = (width - 40) / len(xs)
    across, along = zip(*places.values(), strict=True)
    said = {at: f"layer {labels.count(at[0])}, head {labels.count(at[1])}" for at in places}
    told = ["\n".join(filter(None, (said[at], (notes or {}).get(at)))) for at in places]
    return plot.spec(
        [
            plot.heat(canvas, (0, 255), style.SCALES_OF[kind], hoverinfo="skip"),
            plot.targets(across, along, list(places), told, 0.9 * side),
        ],
        _axis(names, xs, columns + gap, gap) | {"side": "top"},
        down | {"range": down["range"][::-1]},
        round(40 + len(ys) * side),
        (30, 26, 4, 4),
        shapes=frames,
        annotations=[] if plain else texts,
        **plot.CLICKS,
    )


def _axis(texts: list[str], centres: list[float], pitch: int, gap: int) -> Spec:
    ends = [-0.5 - 0.7 * gap, len(centres) * pitch - 0.5 - 0.3 * gap]
    ticks = {"tickmode": "array", "tickvals": centres, "ticktext": texts, "tickfont": {"size": 11}}
    return {**plot.STILL, **ticks, "range": ends}


def _frame(x: float, y: float, height: float, width: float, colour: str, line: float) -> Spec:
    return plot.rectangle(
        x - width / 2, x + width / 2, y - height / 2, y + height / 2, colour, line
    )


def pooled_spec(
    weights: np.ndarray, mask: np.ndarray, kind: str, size: int = style.SIZE, scale: str = "linear"
) -> Spec:
    """A long matrix as an overview: each cell is the largest weight among the cells it stands
    for."""
    pooled, rows, columns = pool(levels(weights, mask, scale), LARGEST)
    place = {"x0": columns / 2 + 0.5, "dx": columns, "y0": rows / 2 + 0.5, "dy": rows}
    told = "near query %{y:.0f}, key %{x:.0f}<extra></extra>"
    cells = plot.heat(pooled, (0, 255), style.SCALES_OF[kind], **place, hovertemplate=told)
    frame = plot.STILL | {"constrain": "domain", "tickfont": {"size": 10}, "nticks": 6}
    across: Spec = {
        "side": "top",
        "title": {"text": "key", "font": {"size": 10}},
        "constraintoward": "left",
    }
    down: Spec = {
        "scaleanchor": "x",
        "title": {"text": "query", "font": {"size": 10}},
        "constraintoward": "top",
    }
    across["range"], down["range"] = [0.5, weights.shape[1] + 0.5], [weights.shape[0] + 0.5, 0.5]
    return plot.spec([cells], frame | across, frame | down, size, (50, 40, 6, 6), width=size)


def pooled_note(weights: np.ndarray) -> str:
    """Says what one cell of the overview stands for."""
    rows, columns = (-(-length // LARGEST) for length in weights.shape)
    return f"maximum over {rows}×{columns} cells" if max(rows, columns) > 1 else "every cell"
