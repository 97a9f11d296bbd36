"""Masks, the scores before masking, and the weight that other masks would let through."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.maps.heatmap import LEGEND, hatching, heatmap, levels, row_tokens
from transformer.view import HeadMap

LEAKED = "#CC79A7"
"""Colour of weight on masked keys (Okabe and Ito palette); no attention kind uses this hue."""
WRITTEN = 22
"""Most columns of a batch for which tokens are written into the cells."""


def mask_map(view: HeadMap, size: int = style.SIZE) -> go.Figure:
    """The mask of a head: keys that each query (row) may attend to are coloured, all others
    hatched."""
    levels = np.where(view.mask, 90, 0).astype(np.uint8)
    figure = _over(view, size, z=levels, showscale=False, hovertemplate="%{text}<extra></extra>")
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top", "yshift": -6}
    return figure.add_annotation(
        plot.note("coloured: may attend · hatched: masked", 0, 0, 10, **place)
    )


def score_map(view: HeadMap, size: int = style.SIZE) -> go.Figure:
    """The scores of a head before the mask, on a scale centred on zero; −∞ has no colour."""
    assert view.scores is not None
    scores = np.where(np.isfinite(view.scores), view.scores, 0.0).astype(np.float32)
    most = max(float(np.abs(scores).max(initial=0.0)), 0.01)
    ends = [-most, 0.0, most]
    bar = {"tickvals": ends, "ticktext": [labels.number(end, ".1f") for end in ends], "len": 0.85}
    bar |= {"title": {"text": "score"}}
    return _over(
        view, size, z=scores, zmin=-most, zmax=most, colorscale=style.DIVERGING, colorbar=bar
    )


def weight_map(view: HeadMap, size: int = style.SIZE) -> go.Figure:
    """The weights of a head that need not be 0 under its mask, which is hatched."""
    return _over(view, size, z=levels(view.weights, view.mask | (view.weights > 0)))


def _over(view: HeadMap, size: int, **cells: object) -> go.Figure:
    """The map of a head with other colours in its cells, so that maps side by side line up."""
    return heatmap(view, size).update_traces(cells, selector={"type": "heatmap"})


def leak_bars(
    view: HeadMap,  # the head; gives kind and tokens
    # height in px of the map beside the bars; each bar is level with its row
    size: int = style.SIZE,
    *,
    visible: np.ndarray,  # (rows,) weight on visible keys
    masked: np.ndarray,  # (rows,) weight on masked keys
) -> go.Figure:
    """Where the weight of each row goes: to visible keys, to masked keys, or nowhere."""
    rows = row_tokens(view)
    longest = max(view.mask.shape)
    around = style.margin(size)
    names = list(map(labels.escape, labels.names(rows)))
    bars = [
        plot.bars(x.astype(np.float32), colour, name=name, text=names)
        | {"textposition": "none", "hovertemplate": f"%{{text}}: %{{x:.3f}} {name}<extra></extra>"}
        for name, x, colour in (
            ("on visible keys", visible, style.HUES[view.kind]),
            ("on masked keys", masked, LEAKED),
        )
    ]
    x = {
        "range": [0, 1.02],
        "tickvals": [0, 0.5, 1],
        "fixedrange": True,
        "side": "top",
        "zeroline": False,
    }
    return plot.figure(
        bars,
        x | {"gridcolor": style.GRID},
        plot.token_axis(rows, size, longest) | {"range": [longest - 0.5, -0.5]},
        size + LEGEND,
        barmode="stack",
        margin=around | {"r": 12, "b": around["b"] + LEGEND, "autoexpand": False},
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 0.95, "yanchor": "top", "yref": "container"},
        bargap=0.2,
    )


def padding_grid(
    sentences: Sequence[Sequence[str]], mask: np.ndarray, selected: int, ink: str
) -> go.Figure:
    """A batch as a rectangle: each row is a sentence, and padding is hatched.

    Sentences and positions are counted from 1.
    """
    rows, columns = mask.shape
    lines = list(map(labels.pieces, sentences))
    shades = [(0.0, "rgba(128,128,128,0)"), (1.0, "rgba(128,128,128,.22)")]
    cells = plot.heat(mask.astype(np.uint8), (0, 1), shades, ygap=3) | {
        "customdata": [[labels.escape(piece) for piece in line] for line in lines],
        "text": [[labels.escape(labels.fitted(piece, 4.5)) for piece in line] for line in lines],
        "texttemplate": "%{text}" if columns <= WRITTEN else "",
        "textfont": {"size": 11, "color": ink},
        "hovertemplate": "sentence %{y}, position %{x}: %{customdata}<extra></extra>",
    }
    across, down = ([str(labels.count(i)) for i in range(count)] for count in mask.shape[::-1])
    return plot.figure(
        [cells, *hatching(mask)],
        plot.named_axis(across, 12, 1 if columns <= 40 else 5, edge=0.55, side="top"),
        plot.named_axis(down, 12, down=True, edge=0.55),
        34 + 30 * rows,
        (24, 26, 4, 6),
        shapes=[
            plot.rectangle(-0.5, columns - 0.5, selected - 0.47, selected + 0.47, style.CHOSEN)
        ],
    )
