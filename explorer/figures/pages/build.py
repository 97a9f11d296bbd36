"""A query that is built: the row that it gives, and the keys as seen from above its plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.bars import percent
from explorer.figures.base.plot import Spec
from explorer.figures.maps.heatmap import hatching

_LEAST = 4.0
"""Least range of the axis of scores, so that equal scores look equal."""


def built_row(
    kind: str,  # encoder, decoder or cross
    tokens: Sequence[str],  # of the keys
    mask: np.ndarray,  # (keys,) true where the row may attend
    scores: np.ndarray,  # (keys,)
    weights: np.ndarray,  # (keys,)
    pair: tuple[int, int],  # the two keys of the plane, drawn in the hue of the kind
    goals: Sequence[float],  # the weights that are asked for
) -> go.Figure:
    """Weights above, scores as points below, one column per key; a dotted line at each weight asked for."""
    names = [labels.escape(name) for name in labels.key_names(tokens)]
    colours = [style.HUES[kind] if key in pair else style.NEUTRAL for key in range(len(tokens))]
    drawn: Spec = {"x": np.arange(len(tokens)), "hovertext": names, "cliponaxis": False}
    weighed, scored = (np.where(mask, each, np.nan).astype(np.float32) for each in (weights, scores))
    written = {
        "text": [percent(float(each)) if each >= 0.005 else "" for each in weights],
        "textfont": {"size": 11},
        "hovertemplate": "%{hovertext}<br>weight %{y:.3f}<extra></extra>",
    }
    told = "%{hovertext}<br>score %{y:.3f}<extra></extra>"
    marker = {"color": colours, "size": 11}
    traces = [
        plot.bars(weighed, colours, across=False, **written) | drawn,
        plot.points(drawn["x"], scored, yaxis="y2", marker=marker, hovertemplate=told) | drawn,
    ]
    low, high = float(scores[mask].min()), float(scores[mask].max())
    air = max(_LEAST - (high - low), 0.3 * (high - low)) / 2
    soft = plot.number_axis(zeroline=None, tickfont=None)
    above = {"domain": [0.52, 1], "range": [0, 1.08], "tickvals": [0, 0.5, 1], "title": "weight"}
    below = {"domain": [0, 0.4], "range": [low - air, high + air], "nticks": 4, "title": "score"}
    return plot.figure(
        [*traces, *hatching(mask[None])],
        plot.token_axis(tokens, style.LARGE, tickangle=-90, anchor="free"),
        soft | above,
        286,
        (56, 12, 6, 66),
        yaxis2=soft | below,
        shapes=[plot.stroke(y=goal, width=1.5, colour=style.CHOSEN) | {"layer": "below"} for goal in goals],
        bargap=0.2,
    )


def key_plane(
    kind: str,  # encoder, decoder or cross
    tokens: Sequence[str],  # of the keys
    places: np.ndarray,  # (keys, 2) the keys, seen from above the plane
    query: np.ndarray,  # (2,) the query in the same axes
    pair: tuple[int, int],  # the two keys that lie in the plane
) -> go.Figure:
    """The keys from above the plane, and the query's direction: a score is how far along it a key lies."""
    size = float(np.linalg.norm(query))
    tip = query / max(size, 1e-9) * 0.7 * float(np.linalg.norm(places, axis=1).max())
    seen = np.concatenate([places, tip[None], np.zeros((1, 2))])
    low, high = seen.min(0), seen.max(0)
    air = 0.15 * float((high - low).max()) + 1e-9
    names = [labels.escape(name) for name in labels.names(tokens, 6)]
    hues = [style.HUES[kind] if key in pair else style.CHOSEN for key in range(len(tokens))]
    keys = plot.points(
        places[:, 0].astype(np.float32),
        places[:, 1].astype(np.float32),
        "markers+text",
        marker={"size": [10 if key in pair else 6 for key in range(len(tokens))], "color": hues},
        text=[name if key in pair else "" for key, name in enumerate(names)],
        textposition="top center",
        textfont={"size": 12},
        cliponaxis=False,
        hovertext=[f"key {name}" for name in names],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    arrow = {"ax": 0, "ay": 0, "axref": "x", "ayref": "y", "showarrow": True, "arrowhead": 2, "arrowwidth": 2}
    head = {"x": tip[0], "y": tip[1], "text": "", "arrowcolor": style.POSITIVE}
    end = {"x": tip[0], "y": tip[1], "showarrow": False, "text": "<b>q</b>", "xshift": 10, "yshift": 8}
    axis = plot.number_axis(zeroline=True, zerolinecolor="rgba(128,128,128,.5)", showticklabels=False)
    across, up = (axis | {"range": [low[i] - air, high[i] + air]} for i in range(2))
    notes = [arrow | head, end] if size else []
    return plot.figure([keys], across, up | {"scaleanchor": "x"}, 210, (6, 6, 6, 6), annotations=notes)
