"""The loss of one position: the model against the smoothed target, and the gradient of the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from explorer.figures.base import labels, style
from explorer.figures.base.bars import Bars, paired_bars, percent

MODEL, TARGET = style.NEUTRAL, style.POSITIVE
_ROW = 31


@dataclass(frozen=True)
class Piece:
    """One row: a piece of the vocabulary, or all others together."""

    name: str  # the piece as people read it
    share: float  # the model's probability p
    target: float  # the smoothed target's probability q
    bare: float  # the target's probability without smoothing


def against_target(pieces: Sequence[Piece], right: int) -> go.Figure:
    """Draws the model's distribution beside the smoothed target; `right` is the row of the right piece."""
    model, target = [each.share for each in pieces], [each.target for each in pieces]
    return _both(pieces, ("the model, p", model), ("the target, q", target), small, right, (0.0, 1.0))


def gradient_bars(pieces: Sequence[Piece], right: int) -> go.Figure:
    """Draws the gradient with respect to each logit, without smoothing and with it."""
    bare = [each.share - each.bare for each in pieces]
    smoothed = [each.share - each.target for each in pieces]
    ends = min(0.0, *bare, *smoothed), max(0.0, *bare, *smoothed, 1e-6)
    return _both(pieces, ("without smoothing", bare), ("with smoothing", smoothed), _signed, right, ends)


def _both(
    pieces: Sequence[Piece],
    first: tuple[str, list[float]],
    second: tuple[str, list[float]],
    write: Callable[[float], str],
    right: int,
    ends: tuple[float, float],
) -> go.Figure:
    sides = []
    for (name, values), colour in ((first, MODEL), (second, TARGET)):
        texts = [labels.escape(write(value)) for value in values]
        sides.append(Bars(name, values, texts, [f"{name}: {text}" for text in texts], colour))
    names = [labels.escape(labels.shorten(each.name, 16)) for each in pieces]
    return paired_bars(names, (sides[0], sides[1]), right, ends, _ROW)


def small(share: float) -> str:
    """A probability as people read it, with as many digits as a very small one needs."""
    if not 0 < share < 0.001:
        return percent(share)
    return (f"{100 * share:.1g}" if share >= 1e-7 else "<0.00001") + labels.PER_CENT


def _signed(value: float) -> str:
    if abs(value) < 5e-7:
        return "0"
    if abs(value) >= 0.095:
        return labels.number(value, "+.2f")
    return labels.number(value, "+.1e" if abs(value) < 1e-4 else "+.2g").replace("e−0", "e−")
