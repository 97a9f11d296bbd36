"""Flicker of a map while dropout is on."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from figures.base import style
from figures.base.cells import colour_bar
from figures.base.shape import HeadLike
from figures.maps.heatmap import heatmap, levels

LEAST = 0.01
"""The scale reaches at least this far, so that a map in which nothing moves stays pale."""


def flicker_map(
    view: HeadLike,  # the head without dropout; gives tokens and mask
    spread: np.ndarray,  # (queries, keys) standard deviation of each weight
    runs: int,  # over how many runs
    size: int = style.SIZE,  # width in px
) -> go.Figure:
    """Draws how much each weight differs from run to run, in the frame of the map itself."""
    top = max(float(spread.max(initial=0)), LEAST)
    figure = heatmap(view, size)
    ticks = {1.0: "0", 128.0: f"{top / 2:.2g}", 255.0: f"{top:.2g}"}
    figure.data[0].update(
        z=levels(spread / top, view.mask),
        customdata=spread.astype(np.float32),
        hovertemplate="%{text}<br>standard deviation %{customdata:.3f}<extra></extra>",
        colorbar=colour_bar(ticks, 0.5, 9, f"standard deviation over {runs} runs") | {"ypad": 4},
    )
    return figure
