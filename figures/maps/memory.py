"""The share of each token left in a recurrent state, as a map that is no map of attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from figures.base import labels, style
from figures.base.cells import colour_bar
from figures.base.grid import token_grid
from figures.maps.heatmap import LARGEST, LEGEND, hatching


def memory_map(
    tokens: Sequence[str],  # what is read, from the first token on
    share: np.ndarray,  # (rows, tokens) from 0 to 1
    size: int = style.LARGE,  # width and height in px
) -> go.Figure:
    """Draws how much of each token (column) is in the state after each row's token; later ones are hatched.

    Raises:
        ValueError: There are more than 64 tokens.
    """
    if len(tokens) > LARGEST:
        raise ValueError(f"A map shows at most {LARGEST} x {LARGEST} cells: ask for a window.")
    names = labels.key_names(tokens)
    seen = np.tri(len(tokens), dtype=bool)
    cells = {
        "type": "heatmap",
        "z": np.where(seen, share, np.nan).astype(np.float32),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [(0.0, style.rgba(style.POSITIVE, style.FAINTEST)), (1.0, style.POSITIVE)],
        "colorbar": colour_bar({0: "0", 0.5: "0.5", 1: "1"}, 0.7, 9, "share of the token that is left")
        | {"ypad": 4},
        "text": [
            [labels.escape(f"after {row}: what is left of {column}") for column in names] for row in names
        ],
        "hovertemplate": "%{text} is %{z:.3f}<extra></extra>",
    }
    layout = token_grid(tokens, tokens, ("state after reading", "what each token put in"), size)
    below = {"b": layout["margin"]["b"] + LEGEND}
    layout |= {"height": layout["height"] + LEGEND, "margin": layout["margin"] | below}
    hatched = hatching(seen)
    return style.figure(style.spec([cells] if hatched is None else [cells, hatched], layout))
