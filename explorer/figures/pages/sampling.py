"""The next-token distribution before and after temperature, top-k and top-p."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.bars import Bars, paired_bars, percent

BEFORE, AFTER = style.NEUTRAL, style.POSITIVE


def before_after(
    tokens: Sequence[str],  # the pieces, most probable first
    before: Sequence[float],  # the model's probabilities
    after: Sequence[float],  # the probabilities with which they are drawn
    written: int,  # place of the token that was drawn
) -> go.Figure:
    """Draws two bars for each token: its probability under the model, and that of being drawn."""
    names = [labels.escape(labels.shorten(labels.piece(token))) for token in tokens]
    notes = [
        f"{labels.escape(labels.piece(token))}<br>the model: {percent(a)} "
        f"(log p {labels.number(math.log(a)) if a > 0 else '−∞'})"
        f"<br>drawn with: {percent(b) if b else 'never'}"
        for token, a, b in zip(tokens, before, after, strict=True)
    ]
    first, second = (
        Bars(name, shares, [labels.escape(percent(each)) if each else "–" for each in shares], notes, colour)
        for name, shares, colour in (
            ("the model", before, BEFORE),
            ("after temperature, top-k and top-p", after, AFTER),
        )
    )
    return paired_bars(names, (first, second), written, (0.0, 1.0), 26)
