"""Vectors and matrices of signed numbers as small heat strips; the hover text gives the numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from explorer.figures.base import labels, plot, style
from explorer.figures.base.plot import Spec

LARGEST_MATRIX = 16_384
"""Most cells of a matrix that are sent one by one; the title of a larger one says it is pooled."""
_STRIP = 22
_LEFT, _RIGHT = 118, 92
"""Room for names and notes beside the cells, so that strips and matrices line up."""
AIR = 5
"""Px between the name of a line and its cells."""
_SMALL = {"tickfont": {"size": 9}}


@dataclass(frozen=True)
class Strip:
    """One vector."""

    name: str  # written to the left of the strip
    values: np.ndarray  # numbers (n,)
    note: str = ""  # written to the right of the strip, such as the vector's length
    bold: bool = False  # whether the name is emphasised


def largest(values: np.ndarray) -> float:
    """The end of a scale centred on zero: the largest magnitude, but at least 1e-9."""
    return max(float(np.abs(values).max(initial=0.0)), 1e-9)


def signed(values: np.ndarray, scale: float, **more: object) -> Spec:
    """A heatmap of signed numbers (rows, columns), transparent at zero."""
    return plot.heat(values, (-scale, scale), style.DIVERGING, **more)


def strips_spec(strips: Sequence[Strip], joint: bool = False, across: str = "dimension") -> Spec:
    """Vectors one below the other, a column for each of what is `across`.

    If they are `joint`, they have one colour scale.
    """
    ends = [largest(strip.values) for strip in strips]
    if joint:
        ends = [max(ends)] * len(ends)
    traces = [
        signed(
            strip.values[None],
            ends[row],
            x0=1,
            y0=row,
            ygap=5,
            name=labels.escape(strip.name),
            hovertemplate=f"{across} %{{x}}: %{{z:.4f}}",
        )
        for row, strip in enumerate(strips)
    ]
    names = [
        labels.bold(labels.escape(labels.shorten(strip.name, 26)), strip.bold) for strip in strips
    ]
    beside: Spec = {"xref": "paper", "xanchor": "left", "xshift": 6, "yanchor": "middle"}
    return plot.spec(
        traces,
        _columns(max(len(strip.values) for strip in strips)),
        plot.named_axis(names, down=True, ticklabelstandoff=AIR),
        _STRIP * len(strips) + 26,
        (_LEFT, 4, _RIGHT, 22),
        annotations=[
            plot.note(labels.escape(strip.note), 1, row, 10, **beside)
            for row, strip in enumerate(strips)
            if strip.note
        ],
    )


def _columns(width: int) -> Spec:
    """An axis of dimensions, from 1."""
    return plot.STILL | _SMALL | {"range": [0.5, width + 0.5], "nticks": 8}


def vectors_spec(
    values: np.ndarray,
    tokens: Sequence[str],
    factors: np.ndarray,
    hover: tuple[str, str],
    selected: int | None = None,
) -> Spec:
    """One vector per token; the hover text shows each number times a factor."""
    count, width = values.shape
    numbers = np.broadcast_to(factors, values.shape)
    trace = signed(
        values,
        largest(values),
        x0=1,
        ygap=1,
        customdata=np.stack([numbers, numbers * values], axis=-1).astype(np.float32),
        hovertemplate=f"%{{y}}, dimension %{{x}}<br>{hover[1]} %{{customdata[0]:.3f}} × "
        f"{hover[0]} %{{z:.3f}} = %{{customdata[1]:.3f}}<extra></extra>",
    )
    framed = list[Spec]()
    if selected is not None:
        framed.append(plot.rectangle(0.5, width + 0.5, selected - 0.5, selected + 0.5))
    size = 10 if count <= 34 else 8
    names = [labels.escape(name) for name in labels.names(tokens, labels.ROOM)]
    down = plot.named_axis(names, size, down=True, ticklabelstandoff=AIR)
    height = int(np.clip(340 / count, 10, 18)) * count + 28
    return plot.spec([trace], _columns(width), down, height, (_LEFT, 4, _RIGHT, 22), shapes=framed)


class Blocks(NamedTuple):
    """A matrix in blocks: from each, the number of largest magnitude."""

    values: np.ndarray
    rows: int  # of a block
    columns: int


def matrices_spec(matrices: Sequence[tuple[str, np.ndarray]], height: int = 210) -> Spec:
    """Weight matrices (name in markup, numbers) side by side, each with its own scale.

    Rows are inputs.
    """
    gap = 0.05
    count = len(matrices)
    width = (1 - gap * (count - 1)) / count
    traces = []
    titles = []
    axes = Spec()
    for place, (name, values) in enumerate(matrices):
        axis = str(place + 1) if place else ""
        left = place * (width + gap)
        blocks = pooled(values)
        traces.append(_matrix(name, blocks, axis))
        titles.append(_matrix_title(name, values, blocks, left))
        ticks = plot.STILL | _SMALL | {"nticks": 5}
        axes[f"xaxis{axis}"] = {**ticks, "domain": [left, left + width], "anchor": f"y{axis}"}
        axes[f"yaxis{axis}"] = {**ticks, "autorange": "reversed", "anchor": f"x{axis}"}
    around = (34, 34, 4, 22)
    if count == 1:
        around = (_LEFT, 34, _RIGHT, 22)
    return plot.spec(
        traces, axes.pop("xaxis"), axes.pop("yaxis"), height, around, **axes, annotations=titles
    )


def _matrix(name: str, blocks: Blocks, axis: str) -> Spec:
    """The cells of a weight matrix on a pair of axes."""
    return signed(
        blocks.values,
        largest(blocks.values),
        x0=(blocks.columns + 1) / 2,
        dx=blocks.columns,
        y0=(blocks.rows + 1) / 2,
        dy=blocks.rows,
        xaxis=f"x{axis}",
        yaxis=f"y{axis}",
        hovertemplate=f"row %{{y}}, column %{{x}}: %{{z:.4f}}<extra>{name}</extra>",
    )


def _matrix_title(name: str, values: np.ndarray, blocks: Blocks, left: float) -> Spec:
    """Name and shape of a weight matrix above it, and what a cell is if it is pooled."""
    text = f"<b>{name}</b> {values.shape[0]} × {values.shape[1]}"
    if (blocks.rows, blocks.columns) != (1, 1):
        text += f"<br>largest of {blocks.rows}×{blocks.columns} cells"
    corner: Spec = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return plot.note(text, left, 1, **corner, align="left")


def pooled(values: np.ndarray, cells: int = LARGEST_MATRIX) -> Blocks:
    """A matrix in at most so many `cells`."""
    rows, columns = values.shape
    down = along = 1
    while -(-rows // down) * -(-columns // along) > cells:
        if rows / down >= columns / along:
            down *= 2
        else:
            along *= 2
    if (down, along) == (1, 1):
        return Blocks(values, 1, 1)
    high, low = (
        extreme.reduceat(
            extreme.reduceat(values, range(0, rows, down), axis=0), range(0, columns, along), axis=1
        )
        for extreme in (np.maximum, np.minimum)
    )
    return Blocks(np.where(high >= -low, high, low), down, along)
