"""What flickers under dropout, in sentences."""

from __future__ import annotations

import numpy as np

from figures.base import labels
from figures.base.bars import percent
from figures.maps.heatmap import row_tokens
from lab.learning.flicker import Flicker
from transformer.trace.view import HeadView
from ui.views.training.told import word


def flickers(found: Flicker, view: HeadView) -> str:
    """The cell that flickers most, and how much the cells flicker on average."""
    spread, mean = (each[view.layer, view.head] for each in (found.spread, found.mean))
    row, column = np.unravel_index(int(spread.argmax()), spread.shape)
    query, key = word(row_tokens(view)[row]), word(view.key_tokens[column])
    before, after, moved = (labels.number(float(each[row, column])) for each in (view.weights, mean, spread))
    return (
        f"The same sentence, {found.runs} times with dropout ({percent(found.rate)}). "
        f"What flickers most is the weight from {query} to {key}: **{before}** without dropout, "
        f"**{after} ± {moved}** with it (mean and standard deviation). On average over all cells that are "
        f"not masked, the standard deviation is {labels.number(_average(spread, view), '.3f')}."
    )


def _average(spread: np.ndarray, view: HeadView) -> float:
    return float(spread[view.mask].mean())
