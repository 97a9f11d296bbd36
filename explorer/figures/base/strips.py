"""Vectors and matrices of signed numbers as small heat strips; the hover text gives the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style

LARGEST_MATRIX = 16_384
"""Most cells of a matrix that are sent one by one; a larger matrix is pooled, and its title says so."""
_STRIP = 22
_BESIDE = {"l": 118, "r": 92}
"""Room for names and notes beside the cells, so that the dimensions of strips and matrices line up."""
_AIR = 5
"""Px between the name of a line and its cells."""
_STILL = {"fixedrange": True, "showgrid": False, "zeroline": False, "ticks": "", "automargin": False}


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


def signed(values: np.ndarray, scale: float, **more: object) -> dict[str, Any]:
    """A heatmap of signed numbers (rows, columns), transparent at zero."""
    return {
        "type": "heatmap",
        "z": np.ascontiguousarray(values, dtype=np.float32),
        "zmin": -scale,
        "zmax": scale,
        "colorscale": style.diverging(),
        "showscale": False,
        **more,
    }


def strips_spec(
    strips: Sequence[Strip],  # the vectors; a shorter one leaves its row empty at the right
    # whether all vectors share one colour scale, as when they are added or compared; otherwise each has its
    # own
    joint: bool = False,
    across: str = "dimension",  # what a column stands for
) -> dict[str, Any]:
    """Vectors one below the other, dimension by dimension."""
    common = max(largest(strip.values) for strip in strips)
    width = max(len(strip.values) for strip in strips)
    traces = [
        signed(
            strip.values[None],
            common if joint else largest(strip.values),
            x0=1,
            y0=row,
            ygap=5,
            name=labels.escape(strip.name),
            hovertemplate=f"{across} %{{x}}: %{{z:.4f}}",
        )
        for row, strip in enumerate(strips)
    ]
    names = [labels.escape(labels.shorten(strip.name, 26)) for strip in strips]
    layout = {
        "xaxis": {**_STILL, "range": [0.5, width + 0.5], "tickfont": {"size": 9}, "nticks": 8},
        "yaxis": {
            **_STILL,
            "range": [len(strips) - 0.5, -0.5],
            "tickmode": "array",
            "tickvals": list(range(len(strips))),
            "ticktext": [f"<b>{n}</b>" if s.bold else n for n, s in zip(names, strips, strict=True)],
            "tickfont": {"size": 11},
            "ticklabelstandoff": _AIR,
        },
        "annotations": [_note(row, strip.note) for row, strip in enumerate(strips) if strip.note],
        "height": _STRIP * len(strips) + 26,
        "margin": {**_BESIDE, "t": 4, "b": 22},
        "dragmode": False,
    }
    return style.spec(traces, layout)


def _note(row: int, text: str) -> dict[str, Any]:
    place = {"xref": "paper", "x": 1, "xanchor": "left", "xshift": 6, "y": row, "yanchor": "middle"}
    return {"text": labels.escape(text), "showarrow": False, "font": {"size": 10}, **place}


def strips(vectors: Sequence[Strip], joint: bool = False, across: str = "dimension") -> go.Figure:
    """`strips_spec` as a figure."""
    return style.figure(strips_spec(vectors, joint, across))


def vectors_spec(
    values: np.ndarray,  # keys or values (tokens, d_head)
    tokens: Sequence[str],  # at most 64
    factors: np.ndarray,  # multiplies each number: (d_head,), the same for every row, or (tokens, 1)
    hover: tuple[str, str],  # names of the number and of its factor, such as `k` and `q`
    selected: int | None = None,  # index in `tokens` of the token to frame
) -> dict[str, Any]:
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
    height = int(np.clip(340 / count, 10, 18))
    layout = {
        "xaxis": {**_STILL, "range": [0.5, width + 0.5], "tickfont": {"size": 9}, "nticks": 8},
        "yaxis": {
            **_STILL,
            "range": [count - 0.5, -0.5],
            "tickmode": "array",
            "tickvals": list(range(count)),
            "ticktext": labels.ticks(tokens),
            "tickfont": {"size": 10 if count <= 34 else 8},
            "ticklabelstandoff": _AIR,
        },
        "shapes": [] if selected is None else [frame(0.5, width + 0.5, selected - 0.5, selected + 0.5)],
        "height": height * count + 28,
        "margin": {**_BESIDE, "t": 4, "b": 22},
        "dragmode": False,
    }
    return style.spec([trace], layout)


def vectors(
    values: np.ndarray,
    tokens: Sequence[str],
    factors: np.ndarray,
    hover: tuple[str, str],
    selected: int | None = None,
) -> go.Figure:
    """`vectors_spec` as a figure."""
    return style.figure(vectors_spec(values, tokens, factors, hover, selected))


def frame(left: float, right: float, top: float, bottom: float, **more: object) -> dict[str, Any]:
    """A rectangle around cells."""
    line = {"color": "rgba(128,128,128,1)", "width": 2}
    return {"type": "rect", "x0": left, "x1": right, "y0": top, "y1": bottom, "line": line} | more


def matrices_spec(
    # name (may hold Plotly's markup) and numbers (rows, columns) of each matrix
    matrices: Sequence[tuple[str, np.ndarray]],
    height: int = 210,  # in px
) -> dict[str, Any]:
    """Weight matrices side by side, each with its own scale; rows are inputs, columns outputs.

    The columns of a single matrix stand under the dimensions of the strips above it.
    """
    gap, count = 0.05, len(matrices)
    width = (1 - gap * (count - 1)) / count
    traces, over = [], []
    layout: dict[str, Any] = {
        "height": height,
        "margin": {"t": 34, "b": 22, **({"l": 34, "r": 4} if count > 1 else _BESIDE)},
        "dragmode": False,
    }
    for place, (name, values) in enumerate(matrices):
        axis, left = str(place + 1) if place else "", place * (width + gap)
        shown, down, along = pooled(values)
        traces.append(
            signed(
                shown,
                largest(shown),
                x0=(along + 1) / 2,
                dx=along,
                y0=(down + 1) / 2,
                dy=down,
                xaxis=f"x{axis}",
                yaxis=f"y{axis}",
                hovertemplate=f"row %{{y}}, column %{{x}}: %{{z:.4f}}<extra>{name}</extra>",
            )
        )
        ticks = {**_STILL, "tickfont": {"size": 9}, "nticks": 5}
        layout[f"xaxis{axis}"] = {**ticks, "domain": [left, left + width], "anchor": f"y{axis}"}
        layout[f"yaxis{axis}"] = {**ticks, "autorange": "reversed", "anchor": f"x{axis}"}
        over.append(_over(left, name, values.shape, (down, along)))
    return style.spec(traces, layout | {"annotations": over})


def _over(left: float, name: str, shape: tuple[int, ...], block: tuple[int, int]) -> dict[str, Any]:
    text = f"<b>{name}</b> {shape[0]} × {shape[1]}"
    if block != (1, 1):
        text += f"<br>largest of {block[0]}×{block[1]} cells"
    place = {"xref": "paper", "yref": "paper", "x": left, "xanchor": "left", "y": 1, "yanchor": "bottom"}
    return {"text": text, "showarrow": False, "align": "left", "font": {"size": 11}, **place}


def pooled(values: np.ndarray, cells: int = LARGEST_MATRIX) -> tuple[np.ndarray, int, int]:
    """Pools a matrix to at most `cells` cells: the number of largest magnitude of each block, with its sign.

    Returns:
        The pooled numbers, and how many rows and columns each of them stands for.
    """
    down = along = 1
    while -(-values.shape[0] // down) * -(-values.shape[1] // along) > cells:
        down, along = (
            (down * 2, along) if values.shape[0] / down >= values.shape[1] / along else (down, along * 2)
        )
    if (down, along) == (1, 1):
        return values, 1, 1
    starts = [np.arange(0, length, step) for length, step in zip(values.shape, (down, along), strict=True)]
    high, low = (
        extreme.reduceat(extreme.reduceat(values, starts[0], axis=0), starts[1], axis=1)
        for extreme in (np.maximum, np.minimum)
    )
    return np.where(high >= -low, high, low), down, along


def matrices(each: Sequence[tuple[str, np.ndarray]], height: int = 210) -> go.Figure:
    """`matrices_spec` as a figure."""
    return style.figure(matrices_spec(each, height))
