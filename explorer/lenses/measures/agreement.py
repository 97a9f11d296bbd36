"""Agreement of two measures: the correlation of their ranks, and what chance would give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transformer.view import Array

DRAWS = 1000


@dataclass(frozen=True)
class Agreement:
    """Spearman's rank correlation over cells."""

    value: float  # from −1 to 1; not a number with fewer than three cells or equal numbers
    low: float  # 2.5 % of the permuted correlations lie below
    high: float  # 2.5 % of them lie above
    cells: int


def agreement(first: Array, second: Array, seed: int = 1, draws: int = DRAWS) -> Agreement:
    """Rank correlation of two measures where both are numbers, and its range if one of them is permuted.

    Spearman's ρ; equal numbers share their mean rank. Without draws, the range is not a number.

    Args:
        first: Numbers of any shape.
        second: Numbers of the same shape.
        seed: Of the permutations.
        draws: How many permutations.
    """
    both = np.isfinite(first) & np.isfinite(second)
    left, right = _ranks(first[both]), _ranks(second[both])
    if len(left) < 3 or not left.std() or not right.std():
        return Agreement(float("nan"), float("nan"), float("nan"), len(left))
    left, right = ((ranks - ranks.mean()) / ranks.std() for ranks in (left, right))
    generator = np.random.default_rng(seed)
    chance = [float(generator.permutation(left) @ right) / len(left) for _ in range(draws)]
    low, high = np.quantile(chance, [0.025, 0.975]) if chance else (np.nan, np.nan)
    return Agreement(float(left @ right) / len(left), float(low), float(high), len(left))


def _ranks(values: Array) -> NDArray[np.float64]:
    """Ranks from 0; equal numbers share the mean of theirs."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: NDArray[np.float64] = (ends - (counts + 1) / 2)[group]
    return means
