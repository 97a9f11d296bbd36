"""The output of one head at one position as the sum that it is: weights over j ≤ i, times values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer.trace.view import Array, HeadView

MOST = 10
"""Most keys that a table shows one by one."""


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """y_i = Σ α_ij v_j over j ≤ i, for one query of one head; positions count from 0."""

    position: int  # i
    tokens: Sequence[str]  # what the positions 0 to i read
    scores: Array  # (i + 1,) scaled, with bias
    weights: Array  # (i + 1,) α
    values: Array  # (i + 1, d_head) v
    total: np.ndarray  # (d_head,) Σ α v, computed here in float64
    used: Array  # (d_head,) the output with which the model went on

    @property
    def error(self) -> float:
        """The largest difference between the sum and the model's output."""
        return float(np.abs(self.total - self.used).max())

    def shown(self) -> list[int]:
        """The keys of most weight, in reading order."""
        best = np.argsort(-self.weights, kind="stable")[:MOST]
        return sorted(int(j) for j in best)

    def others(self) -> list[int]:
        """The keys that are not shown one by one."""
        shown = set(self.shown())
        return [j for j in range(self.position + 1) if j not in shown]


def weighted_sum(
    view: HeadView,  # a whole head of masked self-attention
    position: int,  # the query, from 0
) -> WeightedSum:
    """The sum of one query."""
    seen = slice(0, position + 1)
    weights, values = view.weights[position, seen], view.value[seen]
    return WeightedSum(
        position,
        view.key_tokens[seen],
        view.scores[position, seen],
        weights,
        values,
        weights.astype(np.float64) @ values.astype(np.float64),
        view.output[position],
    )
