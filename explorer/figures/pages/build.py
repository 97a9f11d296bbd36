"""A query that is built: the row that it gives, and the keys as seen from above its plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.bars import percent
from explorer.figures.maps.heatmap import hatching

_SOFT = {"gridcolor": "rgba(128,128,128,.25)", "fixedrange": True, "automargin": False}
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
    """Weights above, scores below, one column per key; a dotted line at each weight that is asked for.

    Scores are points: only their distances count, and their axis need not hold 0.
    """
    names = [labels.escape(name) for name in labels.key_names(tokens)]
    colors = [style.HUES[kind] if key in pair else style.NEUTRAL for key in range(len(tokens))]
    drawn = {"x": np.arange(len(tokens)), "hovertext": names, "cliponaxis": False}
    shares: dict[str, Any] = {
        "type": "bar",
        "y": np.where(mask, weights, np.nan).astype(np.float32),
        "marker": {"color": colors},
        "text": [percent(float(each)) if each >= 0.005 else "" for each in weights],
        "textposition": "outside",
        "textfont": {"size": 11},
        "hovertemplate": "%{hovertext}<br>weight %{y:.3f}<extra></extra>",
    }
    points = {
        "type": "scatter",
        "mode": "markers",
        "y": np.where(mask, scores, np.nan).astype(np.float32),
        "yaxis": "y2",
        "marker": {"color": colors, "size": 11},
        "hovertemplate": "%{hovertext}<br>score %{y:.3f}<extra></extra>",
    }
    traces = [drawn | shares, drawn | points]
    hatched = hatching(mask[None])
    if hatched is not None:
        traces.append(hatched)
    low, high = float(scores[mask].min()), float(scores[mask].max())
    air = max(_LEAST - (high - low), 0.3 * (high - low)) / 2
    line = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "line": {"dash": "dot", "width": 1.5, "color": style.CHOSEN},
    }
    layout = {
        "xaxis": style.token_axis(labels.ticks(tokens), style.LARGE) | {"tickangle": -90, "anchor": "free"},
        "yaxis": {
            **_SOFT,
            "domain": [0.52, 1],
            "range": [0, 1.08],
            "tickvals": [0, 0.5, 1],
            "title": "weight",
        },
        "yaxis2": {
            **_SOFT,
            "domain": [0, 0.4],
            "range": [low - air, high + air],
            "nticks": 4,
            "title": "score",
        },
        "shapes": [line | {"y0": goal, "y1": goal, "layer": "below"} for goal in goals],
        "height": 286,
        "margin": {"l": 56, "t": 12, "r": 6, "b": 66},
        "bargap": 0.2,
        "dragmode": False,
    }
    return style.figure(style.spec(traces, layout))


def key_plane(
    kind: str,  # encoder, decoder or cross
    tokens: Sequence[str],  # of the keys
    points: np.ndarray,  # (keys, 2) the keys, seen from above the plane
    query: np.ndarray,  # (2,) the query in the same axes
    pair: tuple[int, int],  # the two keys that lie in the plane
) -> go.Figure:
    """The keys from above the plane, and the query's direction: a score is how far along it a key lies."""
    size = float(np.linalg.norm(query))
    along = query / max(size, 1e-9) * 0.7 * float(np.linalg.norm(points, axis=1).max())
    shown = np.concatenate([points, along[None], np.zeros((1, 2))])
    low, high = shown.min(0), shown.max(0)
    air = 0.15 * float((high - low).max()) + 1e-9
    names = [labels.escape(name) for name in labels.names(tokens, 6)]
    keys = {
        "type": "scatter",
        "mode": "markers+text",
        "x": points[:, 0].astype(np.float32),
        "y": points[:, 1].astype(np.float32),
        "marker": {
            "size": [10 if key in pair else 6 for key in range(len(tokens))],
            "color": [style.HUES[kind] if key in pair else style.CHOSEN for key in range(len(tokens))],
        },
        "text": [name if key in pair else "" for key, name in enumerate(names)],
        "textposition": "top center",
        "textfont": {"size": 12},
        "cliponaxis": False,
        "hovertext": [f"key {name}" for name in names],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    arrow = {"x": along[0], "y": along[1], "ax": 0, "ay": 0, "axref": "x", "ayref": "y", "showarrow": True}
    arrow |= {"arrowhead": 2, "arrowwidth": 2, "arrowcolor": style.POSITIVE, "text": ""}
    end = {"x": along[0], "y": along[1], "showarrow": False, "text": "<b>q</b>", "xshift": 10, "yshift": 8}
    axis = {**_SOFT, "showticklabels": False, "zeroline": True, "zerolinecolor": "rgba(128,128,128,.5)"}
    across, up = (axis | {"range": [low[i] - air, high[i] + air]} for i in range(2))
    layout = {
        "xaxis": across,
        "yaxis": up | {"scaleanchor": "x"},
        "annotations": [arrow, end] if size else [],
        "height": 210,
        "margin": {"l": 6, "t": 6, "r": 6, "b": 6},
        "dragmode": False,
    }
    return style.figure(style.spec([keys], layout))
