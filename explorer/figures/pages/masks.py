"""Masks, the scores before masking, and the weight that other masks would let through."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.shape import HeadLike
from explorer.figures.maps.heatmap import LEGEND, hatching, heatmap, levels, row_tokens

LEAKED = "#CC79A7"
"""Colour of weight on masked keys (Okabe and Ito palette); no attention kind uses this hue."""
WRITTEN = 22
"""Most columns of a batch for which tokens are written into the cells."""


def mask_map(view: HeadLike, size: int = style.SIZE) -> go.Figure:
    """The mask of a head: keys that each query (row) may attend to are coloured, all others hatched."""
    levels = np.where(view.mask, 90, 0).astype(np.uint8)
    return _over(view, size, z=levels, showscale=False, hovertemplate="%{text}<extra></extra>")


def score_map(view: HeadLike, size: int = style.SIZE) -> go.Figure:
    """The scores of a head before the mask, on a scale centred on zero; −∞ has no colour."""
    assert view.scores is not None
    scores = np.where(np.isfinite(view.scores), view.scores, 0.0).astype(np.float32)
    most = max(float(np.abs(scores).max(initial=0.0)), 0.01)
    ends = [-most, 0.0, most]
    bar = {"tickvals": ends, "ticktext": [labels.number(end, ".1f") for end in ends], "len": 0.85}
    bar |= {"title": {"text": "score"}}
    return _over(view, size, z=scores, zmin=-most, zmax=most, colorscale=style.diverging(), colorbar=bar)


def weight_map(view: HeadLike, size: int = style.SIZE) -> go.Figure:
    """The weights of a head that need not be 0 under its mask, which is hatched."""
    return _over(view, size, z=levels(view.weights, view.mask | (view.weights > 0)))


def _over(view: HeadLike, size: int, **cells: object) -> go.Figure:
    """The map of a head with other colours in its cells, so that maps side by side line up."""
    return heatmap(view, size).update_traces(cells, selector={"type": "heatmap"})


def leak_bars(
    view: HeadLike,  # the head; gives kind and tokens
    size: int = style.SIZE,  # height in px of the map beside the bars; each bar is level with its row
    *,
    visible: np.ndarray,  # (rows,) weight on visible keys
    masked: np.ndarray,  # (rows,) weight on masked keys
) -> go.Figure:
    """Where the weight of each row goes: to visible keys, to masked keys, or nowhere."""
    rows, longest = row_tokens(view), max(view.mask.shape)
    parts = (("on visible keys", visible, style.HUES[view.kind]), ("on masked keys", masked, LEAKED))
    bars = [
        {"type": "bar", "orientation": "h", "name": name, "x": x.astype(np.float32), "y": np.arange(len(x))}
        | {"marker": {"color": color}, "text": list(map(labels.escape, labels.names(rows)))}
        | {"textposition": "none", "hovertemplate": f"%{{text}}: %{{x:.3f}} {name}<extra></extra>"}
        for name, x, color in parts
    ]
    around = style.margin(size)
    layout = {
        "barmode": "stack",
        "xaxis": {"range": [0, 1.02], "tickvals": [0, 0.5, 1], "fixedrange": True, "side": "top"}
        | {"zeroline": False, "gridcolor": "rgba(128,128,128,.25)"},
        "yaxis": style.token_axis(labels.ticks(rows), size, longest) | {"range": [longest - 0.5, -0.5]},
        "height": size + LEGEND,
        "margin": around | {"r": 12, "b": around["b"] + LEGEND, "autoexpand": False},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 0.95, "yanchor": "top", "yref": "container"},
        "bargap": 0.2,
        "dragmode": False,
    }
    return style.figure(style.spec(bars, layout))


def padding_grid(
    sentences: Sequence[Sequence[str]],  # tokens of each row, `<pad>` included
    mask: np.ndarray,  # (sentences, length), True for tokens
    selected: int,  # the row to frame, from 0
    ink: str,  # the colour of the tokens in the cells
) -> go.Figure:
    """A batch as a rectangle: each row is a sentence, and padding is hatched."""
    rows, columns = mask.shape
    shown = list(map(labels.pieces, sentences))
    cells = {
        "type": "heatmap",
        "z": mask.astype(np.uint8),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [(0, "rgba(128,128,128,0)"), (1, "rgba(128,128,128,.22)")],
        "showscale": False,
        "ygap": 3,
        "customdata": [[labels.escape(each) for each in line] for line in shown],
        "text": [[labels.escape(labels.fitted(each, 4.5)) for each in line] for line in shown],
        "texttemplate": "%{text}" if columns <= WRITTEN else "",
        "textfont": {"size": 11, "color": ink},
        "hovertemplate": "sentence %{y}, position %{x}: %{customdata}<extra></extra>",
    }
    hatched = hatching(mask)
    frame = {"type": "rect", "x0": -0.5, "x1": columns - 0.5, "y0": selected - 0.47, "y1": selected + 0.47}
    layout = {
        "xaxis": _counted(columns, 1 if columns <= 40 else 5)
        | {"range": [-0.55, columns - 0.45], "side": "top"},
        "yaxis": _counted(rows) | {"range": [rows - 0.45, -0.55]},
        "height": 34 + 30 * rows,
        "margin": {"l": 24, "t": 26, "r": 4, "b": 6},
        "shapes": [frame | {"line": {"color": style.CHOSEN, "width": 2}}],
        "dragmode": False,
    }
    return style.figure(style.spec([cells, *([hatched] if hatched else [])], layout))


def _counted(count: int, step: int = 1) -> dict[str, object]:
    """An axis whose places are counted from 1."""
    places = list(range(0, count, step))
    look = {"fixedrange": True, "showgrid": False, "zeroline": False, "ticks": ""}
    return look | {"tickvals": places, "ticktext": [labels.count(i) for i in places]}
