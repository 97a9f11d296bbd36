"""Two heads small enough to write out: seven matrices of whole numbers, and what they compute.

Three tokens, four dimensions: noun, verb, first, last. One head looks for the first noun, the other
for the last. Nothing here is trained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.what_if.arithmetic import softmax

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
WORDS = ("cat", "sees", "mouse")


@dataclass(frozen=True, eq=False)
class ToyHead:
    """One head of the pair."""

    w_q: Integers  # (d_model, d_head) W^Q
    w_k: Integers  # (d_model, d_head) W^K
    w_v: Integers  # (d_model, d_head) W^V
    weights: Doubles  # (tokens, tokens) softmax(Q Kᵀ / √d_k)
    output: Doubles  # (tokens, d_head) weights times V

    @property
    def matrices(self) -> tuple[Integers, Integers, Integers]:
        """W^Q, W^K, W^V."""
        return self.w_q, self.w_k, self.w_v


@dataclass(frozen=True, eq=False)
class TwoHeads:
    """Both heads and the matrix that joins them (section 3.2.2)."""

    x: Integers  # (tokens, d_model) the inputs
    heads: tuple[ToyHead, ToyHead]  # the two heads
    w_o: Integers  # (2 d_head, d_model) W^O
    output: Doubles  # (tokens, d_model) Concat(head_1, head_2) W^O

    @property
    def matrices(self) -> tuple[Integers, ...]:
        """All seven matrices."""
        return (*self.heads[0].matrices, *self.heads[1].matrices, self.w_o)

    @property
    def numbers(self) -> int:
        """Count of the numbers in the seven matrices."""
        return sum(each.size for each in self.matrices)


def two_heads() -> TwoHeads:
    """The pair, computed."""
    x = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 1]])
    asks, content = np.array([[0, 0], [3, 0], [0, 0], [0, 0]]), np.array([[0, 0], [0, 0], [1, 0], [0, 1]])
    first, last = np.zeros((4, 2), dtype=np.int64), np.zeros((4, 2), dtype=np.int64)
    first[2, 0] = last[3, 0] = 3
    heads = _head(x, asks, first, content), _head(x, asks, last, content)
    w_o = np.array([[0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]])
    joined = np.concatenate([head.output for head in heads], axis=1)
    return TwoHeads(x, heads, w_o, joined @ w_o)


def _head(x: Integers, w_q: Integers, w_k: Integers, w_v: Integers) -> ToyHead:
    scores = (x @ w_q) @ (x @ w_k).T / np.sqrt(w_q.shape[1])
    seen = np.ones(len(x), dtype=bool)
    weights = np.stack([softmax(row, seen) for row in scores])
    return ToyHead(w_q, w_k, w_v, weights, weights @ (x @ w_v))
