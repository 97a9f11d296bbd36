"""The next-token distribution before and after temperature, top-k and top-p."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.bars import percent
from explorer.figures.base.paired import Bars, paired_bars

_ROW = 26
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
        f"{labels.escape(labels.piece(token))}<br>the model: {percent(a)} (log p {_nats(a)})"
        f"<br>drawn with: {percent(b) if b else 'never'}"
        for token, a, b in zip(tokens, before, after, strict=True)
    ]
    sides = (
        Bars("the model", before, _texts(before), notes, BEFORE),
        Bars("after temperature, top-k and top-p", after, _texts(after), notes, AFTER),
    )
    return paired_bars(names, sides, written, (0.0, 1.0), _ROW)


def _texts(shares: Sequence[float]) -> list[str]:
    return [labels.escape(percent(share)) if share else "–" for share in shares]


def _nats(share: float) -> str:
    return labels.number(math.log(share)) if share > 0 else "−∞"
