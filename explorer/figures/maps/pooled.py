"""A long matrix as an overview, pooled to at most 64 x 64 cells and labelled as pooled."""

from __future__ import annotations

import numpy as np

from explorer.figures.base import plot, style
from explorer.figures.base.plot import Spec
from explorer.figures.maps.heatmap import LARGEST, levels, pool


def pooled_spec(
    weights: np.ndarray, mask: np.ndarray, kind: str, size: int = style.SIZE, scale: str = "linear"
) -> Spec:
    """A long matrix as an overview: each cell is the largest weight among the cells it stands for.

    Args:
        weights: attention weights (queries, keys) of any length.
        mask: True where the query may attend (queries, keys).
        kind: encoder, decoder or cross.
        size: width and height in px; the axes count queries and keys from 1.
        scale: one of `style.SCALES`.
    """
    pooled, rows, columns = pool(levels(weights, mask, scale), LARGEST)
    place = {"x0": columns / 2 + 0.5, "dx": columns, "y0": rows / 2 + 0.5, "dy": rows}
    told = "near query %{y:.0f}, key %{x:.0f}<extra></extra>"
    cells = plot.heat(pooled, (0, 255), style.scale(kind), **place, hovertemplate=told)
    frame = plot.STILL | {"constrain": "domain", "tickfont": {"size": 10}, "nticks": 6}
    across: Spec = {"side": "top", "title": {"text": "key", "font": {"size": 10}}, "constraintoward": "left"}
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
