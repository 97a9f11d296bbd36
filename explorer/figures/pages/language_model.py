"""Figures of the page Language model: the surprisal of each token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.figures.base import labels, plot, style
from explorer.figures.base.bars import upright
from explorer.figures.base.plot import Spec

LARGEST = 16.0
"""Bits at which a token has the full shade, in every text, so that texts can be compared."""


def share(bits: float) -> float:
    """The shade of a token of so many bits, from 0 to 1."""
    return min(bits / LARGEST, 1.0)


def bits_spec(tokens: Sequence[str], bits: Sequence[float], height: int = 190) -> Spec:
    """The surprisal of each token, −log₂ p, as bars; in the frame of each token, its bar stands out."""
    bar = plot.bars(
        np.array(bits, np.float32),
        style.POSITIVE,
        across=False,
        hovertext=[labels.escape(name) for name in labels.names(tokens)],
        hovertemplate="%{hovertext}<br>%{y:.2f} bits<extra></extra>",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 0.45}},
    )
    frames = [{"name": str(i), "data": [{"selectedpoints": [i]}]} for i in range(len(tokens))]
    axes = upright(tokens, "bits", [0, 1.05 * max(*bits, 1.0)])
    return plot.spec([bar], *axes, height, (50, 8, 6, 74), bargap=0.15, frames=frames)
