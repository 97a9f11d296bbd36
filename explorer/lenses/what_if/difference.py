"""Compares two attention maps cell by cell, after aligning their tokens by edit distance.

Cells that exist in only one map are marked and never subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Number = TypeVar("Number", np.float32, np.bool_)
Pair = tuple[int | None, int | None]
"""Positions in the first and second sequence, from 0; None if a sequence has no matching token."""


def align_tokens(first: Sequence[str], second: Sequence[str]) -> tuple[Pair, ...]:
    """Pairs the tokens of two sequences with the fewest insertions, deletions and replacements (Levenshtein).

    The pairs are in the order of both, and a replacement is one. If several alignments are equally short, one
    that keeps the common beginning is chosen.
    """
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    a, b = first[start:], second[start:]
    common: list[Pair] = [(i, i) for i in range(start)]
    return (*common, *((_moved(i, start), _moved(j, start)) for i, j in _backtrack(_costs(a, b), a, b)))


def _moved(index: int | None, by: int) -> int | None:
    return None if index is None else index + by


def _costs(a: Sequence[str], b: Sequence[str]) -> list[list[int]]:
    """Number of edits between all prefixes (len(a) + 1, len(b) + 1)."""
    costs = [list(range(len(b) + 1))]
    for i, token in enumerate(a, start=1):
        above, line = costs[-1], [i]
        for j, other in enumerate(b, start=1):
            line.append(min(above[j - 1] + (token != other), above[j] + 1, line[-1] + 1))
        costs.append(line)
    return costs


def _backtrack(costs: list[list[int]], a: Sequence[str], b: Sequence[str]) -> list[Pair]:
    i, j = len(a), len(b)
    pairs: list[Pair] = []
    while i or j:
        here = costs[i][j]
        if i and j and here == costs[i - 1][j - 1] + (a[i - 1] != b[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif i and here == costs[i - 1][j] + 1:
            i -= 1
            pairs.append((i, None))
        else:
            j -= 1
            pairs.append((None, j))
    return pairs[::-1]


@dataclass(frozen=True)
class Map:
    """A whole attention map with the names of its rows and columns."""

    rows: Sequence[str]  # tokens of the queries
    columns: Sequence[str]  # tokens of the keys
    weights: Floats  # (queries, keys)
    mask: Bools  # (queries, keys), True if a query may attend to the key


@dataclass(frozen=True)
class Difference:
    """The first map minus the second, over the rows and columns of both."""

    rows: tuple[Pair, ...]  # aligned rows
    columns: tuple[Pair, ...]  # aligned columns
    first: Floats  # (rows, columns) weights of the first map; 0 for cells that it lacks
    second: Floats  # the same for the second map
    compared: Bools  # (rows, columns), True for cells that both maps have and that at least one mask allows
    values: Floats  # (rows, columns) first − second for compared cells, else 0
    # (rows,) total variation distance ½ Σ |first − second| of the rows that both maps have, from 0 (equal) to
    # 1 (no weight in common); NaN for other rows. Weight on columns of only one map counts as not in common.
    distances: Floats

    @property
    def mean(self) -> float:
        """Mean |difference| over the compared cells; 0 if there are none."""
        return float(np.abs(self.values[self.compared]).mean()) if self.compared.any() else 0.0

    @property
    def most(self) -> float:
        """Largest |difference|."""
        return float(np.abs(self.values).max(initial=0.0))

    @property
    def distance(self) -> float:
        """Mean total variation distance over the rows that both maps have; NaN if there are none."""
        both = self.distances[~np.isnan(self.distances)]
        return float(both.mean()) if both.size else float("nan")

    @property
    def farthest(self) -> int | None:
        """The row with the largest distance, from 0; None if the maps have no row in common."""
        return None if np.isnan(self.distances).all() else int(np.nanargmax(self.distances))


def difference(first: Map, second: Map) -> Difference:
    """Aligns two maps and subtracts the second from the first."""
    rows = align_tokens(first.rows, second.rows)
    columns = align_tokens(first.columns, second.columns)
    a, b = (_spread(side.weights, rows, columns, at) for at, side in enumerate((first, second)))
    seen = [_spread(side.mask, rows, columns, at) for at, side in enumerate((first, second))]
    both_rows, both_columns = (
        np.array([None not in pair for pair in axis], bool) for axis in (rows, columns)
    )
    compared = both_rows[:, None] & both_columns & (seen[0] | seen[1])
    distances = np.where(both_rows, np.abs(a - b).sum(-1) / 2, np.nan)
    values = np.where(compared, a - b, 0)
    return Difference(rows, columns, a, b, compared, values.astype(np.float32), distances.astype(np.float32))


def _spread(
    values: NDArray[Number], rows: tuple[Pair, ...], columns: tuple[Pair, ...], which: int
) -> NDArray[Number]:
    """Spreads one of the two maps over the rows and columns of both; 0 for cells that the map lacks."""
    spread = np.zeros((len(rows), len(columns)), values.dtype)
    to_rows, from_rows = _indices(rows, which)
    to_columns, from_columns = _indices(columns, which)
    spread[np.ix_(to_rows, to_columns)] = values[np.ix_(from_rows, from_columns)]
    return spread


def _indices(pairs: tuple[Pair, ...], which: int) -> tuple[list[int], list[int]]:
    """The pairs that contain a token of one of the two maps, and the positions of these tokens."""
    held = [(index, pair[which]) for index, pair in enumerate(pairs)]
    return [index for index, i in held if i is not None], [i for _, i in held if i is not None]


def uniform_weights(mask: Bools) -> Floats:
    """A control map: every visible key of a row gets the same weight; a row without keys is all zeros."""
    visible = mask.sum(-1, keepdims=True)
    return np.divide(mask, visible, out=np.zeros(mask.shape, np.float32), where=visible > 0, dtype=np.float32)
