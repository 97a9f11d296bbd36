"""Masks, the scores before masking, and the weight that other masks would let through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.grid import token_grid
from explorer.figures.base.shape import HeadLike
from explorer.figures.maps.heatmap import LEGEND, axis_titles, hatching, legend, levels, row_tokens

LEAKED = "#CC79A7"
"""Colour of weight on masked keys (Okabe and Ito palette); no attention kind uses this hue."""
WRITTEN = 22
"""Most columns of a batch for which tokens are written into the cells."""


def mask_map(
    view: HeadLike,  # the head; its weights and scores are not drawn
    size: int = style.SIZE,  # width and height in px
    hover: bool = True,  # whether the hover text names the cell
) -> go.Figure:
    """Draws the mask of a head: the keys that each query (row) may attend to; all other cells are hatched."""
    level = np.where(view.mask, 90, 0).astype(np.uint8)
    cells = _cells(level, style.scale(view.kind)) | {"zmin": 0, "zmax": 255}
    if hover:
        cells |= {"text": _names(view, np.where(view.mask, "may attend", "masked"))}
    else:
        cells |= {"hoverinfo": "skip", "hovertemplate": None}
    said: dict[str, Any] = {"text": "coloured: may attend · hatched: masked", "showarrow": False}
    said |= {"xref": "paper", "yref": "paper", "x": 0, "y": 0, "xanchor": "left", "yanchor": "top"}
    return _below(_map(view, cells, size)).add_annotation(said | {"font": {"size": 9}, "yshift": -6})


def score_map(
    view: HeadLike,  # the head; gives tokens and mask
    scores: np.ndarray,  # (queries, keys), scaled; −∞ leaves its cell empty
    size: int = style.SIZE,  # width in px; the map is square, the scale below it
) -> go.Figure:
    """Draws scores on a diverging scale centred on zero, with a colour bar under the map."""
    finite = np.where(np.isfinite(scores), scores, 0.0).astype(np.float32)
    most = max(float(np.abs(finite).max(initial=0.0)), 0.01)
    cells = _cells(finite, style.diverging()) | {"zmin": -most, "zmax": most}
    cells |= {"showscale": True, "colorbar": _scale_strip(most, size), "customdata": scores}
    cells |= {"text": _names(view, np.where(view.mask, "", "to be masked"))}
    cells["hovertemplate"] = "%{text}<br>score %{customdata:.2f}<extra></extra>"
    return _below(_map(view, cells, size))


def weight_map(
    view: HeadLike,  # the head; gives tokens and mask
    weights: np.ndarray,  # (queries, keys) from 0 to 1
    size: int = style.SIZE,  # width and height in px
) -> go.Figure:
    """Draws weights that need not be 0 under the mask: hatching covers the cells that should be masked."""
    shown = levels(weights, view.mask | (weights > 0))
    cells = _cells(shown, style.scale(view.kind)) | {"zmin": 0, "zmax": 255} | legend()
    cells |= {"customdata": weights.astype(np.float32)}
    cells |= {"text": _names(view, np.where(view.mask, "", np.where(weights > 0, "leaks", "masked")))}
    cells["hovertemplate"] = "%{text}<br>weight %{customdata:.3f}<extra></extra>"
    return _below(_map(view, cells, size))


def leak_bars(
    view: HeadLike,  # the head; gives kind and tokens
    visible: np.ndarray,  # (rows,) weight on visible keys
    masked: np.ndarray,  # (rows,) weight on masked keys
    size: int = style.SIZE,  # height in px of the map beside the bars; each bar is level with its row
) -> go.Figure:
    """Draws, for each row, where its weight goes: to visible keys, to masked keys, or nowhere."""
    rows, longest = row_tokens(view), max(view.mask.shape)
    names = [labels.escape(name) for name in labels.names(rows)]
    parts = (("on visible keys", visible, style.HUES[view.kind]), ("on masked keys", masked, LEAKED))
    bars = [
        go.Bar(
            name=name,
            x=values.astype(np.float32),
            y=np.arange(len(rows)),
            orientation="h",
            marker={"color": color},
            text=names,
            textposition="none",
            hovertemplate=f"%{{text}}: %{{x:.3f}} {name}<extra></extra>",
        )
        for name, values, color in parts
    ]
    figure = style.bare(go.Figure(bars))
    down = style.token_axis(labels.ticks(rows), size, longest) | {"range": [longest - 0.5, -0.5]}
    across = {"range": [0, 1.02], "tickvals": [0, 0.5, 1], "fixedrange": True, "side": "top"}
    across |= {"zeroline": False, "gridcolor": "rgba(128,128,128,.25)"}
    return figure.update_layout(
        barmode="stack",
        xaxis=across,
        yaxis=down,
        height=size + LEGEND,
        margin=style.margin(size) | {"r": 12, "b": 4 + LEGEND, "autoexpand": False},
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 0.95, "yanchor": "top", "yref": "container"}
        | {"traceorder": "normal"},
        bargap=0.2,
        dragmode=False,
    )


def padding_grid(
    sentences: Sequence[Sequence[str]],  # tokens of each row, `<pad>` included
    mask: np.ndarray,  # (sentences, length), True for tokens
    selected: int,  # the row to frame, from 0
) -> go.Figure:
    """Draws a batch as a rectangle: each row is a sentence, and padding is hatched."""
    rows, columns = mask.shape
    shown = list(map(labels.pieces, sentences))
    cells: dict[str, Any] = {
        "type": "heatmap",
        "z": mask.astype(np.uint8),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [(0, "rgba(128,128,128,0)"), (1, "rgba(128,128,128,.22)")],
        "showscale": False,
        "customdata": [[labels.escape(each) for each in line] for line in shown],
        "ygap": 3,
        "hovertemplate": "sentence %{y}, position %{x}: %{customdata}<extra></extra>",
        "x0": 1,
        "y0": 1,
    }
    hatched = hatching(mask)
    traces = [cells, _written(shown)] if columns <= WRITTEN else [cells]
    if hatched is not None:
        moved = [[None if at is None else at + 1 for at in hatched[axis]] for axis in "xy"]
        traces.append(hatched | {"x": moved[0], "y": moved[1]})
    still = {"fixedrange": True, "showgrid": False, "zeroline": False, "ticks": ""}
    frame = {"type": "rect", "x0": 0.5, "x1": columns + 0.5, "y0": selected + 0.53, "y1": selected + 1.47}
    layout = {
        "xaxis": still | {"range": [0.45, columns + 0.55], "side": "top", "dtick": 1 if columns <= 40 else 5},
        "yaxis": still | {"range": [rows + 0.55, 0.45], "dtick": 1},
        "height": 34 + 30 * rows,
        "margin": {"l": 24, "t": 26, "r": 4, "b": 6},
        "shapes": [frame | {"line": {"color": style.CHOSEN, "width": 2}}],
        "dragmode": False,
    }
    return style.figure(style.spec(traces, layout))


def _written(shown: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Tokens in the cells of a batch, in the page's text colour."""
    places = [(i, j) for j, line in enumerate(shown, start=1) for i in range(1, len(line) + 1)]
    return {
        "type": "scatter",
        "mode": "text",
        "x": np.array([i for i, _ in places], dtype=np.float32),
        "y": np.array([j for _, j in places], dtype=np.float32),
        "text": [labels.escape(labels.fitted(each, 4.5)) for line in shown for each in line],
        "textfont": {"size": 11},
        "hoverinfo": "skip",
    }


def _cells(values: np.ndarray, colors: list[tuple[float, str]]) -> dict[str, Any]:
    look = {"showscale": False, "hovertemplate": "%{text}<extra></extra>"}
    return {"type": "heatmap", "z": values, "colorscale": colors, **look}


def _map(view: HeadLike, cells: dict[str, Any], size: int) -> go.Figure:
    hatched = hatching(view.mask)
    layout = token_grid(row_tokens(view), view.key_tokens, axis_titles(view), size)
    return style.figure(style.spec([cells] if hatched is None else [cells, hatched], layout))


def _below(figure: go.Figure) -> go.Figure:
    """Makes room under a map for its legend: the same for every map, so that maps beside it line up."""
    figure.layout.margin.b += LEGEND
    figure.layout.height += LEGEND
    return figure


def _scale_strip(most: float, size: int) -> dict[str, Any]:
    """A colour bar under the map, from −most through 0 to most."""
    ends = [-most, 0.0, most]
    return {
        "orientation": "h",
        "thickness": 8,
        "x": 0,
        "xanchor": "left",
        "y": 0,
        "yanchor": "top",
        "ypad": 6,
        "xpad": 0,
        "len": 0.85,
        "tickvals": ends,
        "ticktext": [labels.number(end, ".1f") for end in ends],
        "tickfont": {"size": 10},
        "outlinewidth": 0,
    }


def _names(view: HeadLike, notes: np.ndarray) -> list[list[str]]:
    """Hover texts: row, column, and the note (queries, keys) on the cell, if there is one."""
    rows, columns = labels.names(row_tokens(view)), labels.names(view.key_tokens)
    return [
        [
            labels.escape(f"{row}, key {column}" + (f" ({note})" if note else ""))
            for column, note in zip(columns, line, strict=True)
        ]
        for row, line in zip(rows, notes, strict=True)
    ]
