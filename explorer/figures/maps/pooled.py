"""A long matrix as an overview, pooled to at most 64 x 64 cells and labelled as pooled."""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.figures.base import style
from explorer.figures.maps.heatmap import LARGEST, levels, pool


def pooled_spec(
    weights: np.ndarray, mask: np.ndarray, kind: str, size: int = style.SIZE, scale: str = "linear"
) -> dict[str, Any]:
    """A long matrix as an overview: each cell is the largest weight among the cells it stands for.

    Args:
        weights: attention weights (queries, keys) of any length.
        mask: True where the query may attend (queries, keys).
        kind: encoder, decoder or cross.
        size: width and height in px; the axes count queries and keys from 1.
        scale: one of `style.SCALES`.
    """
    pooled, rows, columns = pool(levels(weights, mask, scale), LARGEST)
    cells = {
        "type": "heatmap",
        "z": pooled,
        "x0": columns / 2 + 0.5,
        "dx": columns,
        "y0": rows / 2 + 0.5,
        "dy": rows,
        "zmin": 0,
        "zmax": 255,
        "colorscale": style.scale(kind),
        "showscale": False,
        "hovertemplate": "near query %{y:.0f}, key %{x:.0f}<extra></extra>",
    }
    frame = {"showgrid": False, "zeroline": False, "fixedrange": True, "constrain": "domain"}
    frame |= {"tickfont": {"size": 10}, "automargin": False, "nticks": 6, "ticks": ""}
    across = {"side": "top", "title": {"text": "key", "font": {"size": 10}}, "constraintoward": "left"}
    down = {"scaleanchor": "x", "title": {"text": "query", "font": {"size": 10}}, "constraintoward": "top"}
    layout = {
        "xaxis": frame | across | {"range": [0.5, weights.shape[1] + 0.5]},
        "yaxis": frame | down | {"range": [weights.shape[0] + 0.5, 0.5]},
        "width": size,
        "height": size,
        "margin": {"l": 50, "t": 40, "r": 6, "b": 6},
        "dragmode": False,
    }
    return style.spec([cells], layout)


def pooled_note(weights: np.ndarray) -> str:
    """Says what one cell of the overview stands for."""
    rows, columns = (-(-length // LARGEST) for length in weights.shape)
    return f"maximum over {rows}×{columns} cells" if max(rows, columns) > 1 else "every cell"
