"""Figures of the page Language model: the surprisal of each token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from explorer.figures.base import labels, style

LARGEST = 16.0
"""Bits at which a token has the full shade, in every text, so that texts can be compared."""


def share(bits: float) -> float:
    """The shade of a token of so many bits, from 0 to 1."""
    return min(bits / LARGEST, 1.0)


def bits_spec(
    tokens: Sequence[str],  # the pieces
    bits: Sequence[float],  # −log₂ p of each
    height: int = 190,  # in px
) -> dict[str, Any]:
    """The surprisal of each token as bars; the frames, one for each token, let its bar stand out."""
    frames = [{"name": str(i), "data": [{"selectedpoints": [i]}]} for i in range(len(tokens))]
    bar = {
        "type": "bar",
        "x": list(range(len(tokens))),
        "y": np.array(bits, dtype=np.float32),
        "hovertext": [labels.escape(name) for name in labels.names(tokens)],
        "hovertemplate": "%{hovertext}<br>%{y:.2f} bits<extra></extra>",
        "marker": {"color": style.POSITIVE},
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 0.45}},
    }
    axis = {
        "range": [0, 1.05 * max(*bits, 1.0)],
        "fixedrange": True,
        "automargin": False,
        "title": {"text": "bits", "font": {"size": 11}},
        "gridcolor": "rgba(128,128,128,.25)",
        "zeroline": False,
    }
    layout = {
        "xaxis": {**style.token_axis(labels.ticks(tokens)), "tickangle": -90},
        "yaxis": axis,
        "height": height,
        "margin": {"l": 50, "t": 8, "r": 6, "b": 74},
        "bargap": 0.15,
        "dragmode": False,
    }
    return style.spec([bar], layout, frames)
