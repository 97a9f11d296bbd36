"""Rules for a bias that positions add to the scores, without storing a matrix of queries × keys.

A rule holds one table, so its memory does not grow with the text. It computes the matrix only for the rows
and columns that a caller asks for.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

Heads = int | slice
ALL_HEADS = slice(None)


class BiasRule:
    """A rule for the bias added to the scaled scores q · k / √d_k."""

    name: ClassVar[str]
    sizes: ClassVar[tuple[str | int, ...]]
    """Axes of the table: `heads`, `d_head`, an odd number of `distances` (−reach to reach), or a number."""
    divided: ClassVar[bool] = False
    """True if the bias is a product with the query, divided by √d_k as q · k is."""
    last: tuple[object, Tensor] | None = None
    """The matrix that was asked for last, and for what, if it is small and no product with the query."""

    def __init__(
        self,
        table: Tensor,  # (heads, …) numbers from which the rule computes the bias
    ) -> None:
        self.table = table

    def scores(
        self,
        # (…, queries, d_head) of one head or (…, heads, queries, d_head) of several; some rules depend on it
        query: Tensor,
        rows: Tensor,  # (queries,) positions of the queries
        columns: Tensor,  # (keys,) positions of the keys
        heads: Heads = ALL_HEADS,  # the heads that ``query`` holds
    ) -> Tensor:
        """(queries, keys) or (heads, queries, keys) bias, with leading dimensions if it uses the query."""
        raise NotImplementedError

    def arrays(self) -> dict[str, Tensor]:
        """The arrays that a file needs so that ``rule_from`` can rebuild the rule."""
        return {"table": self.table}

    def kept(self) -> BiasRule:
        """A copy of the rule in float32 on the CPU, for a trace."""
        return type(self)(self.table.detach().float().cpu())


class LinearRule(BiasRule):
    """ALiBi: −m · |i − j| with a fixed slope m per head (Press et al. 2022, section 3).

    Under a causal mask this is the paper's −m · (i − j). Without a causal mask it is symmetric: two keys at
    the same distance left and right get the same bias. The table is (heads,), the slopes.
    """

    name = "alibi"
    sizes = ("heads",)

    def scores(self, query: Tensor, rows: Tensor, columns: Tensor, heads: Heads = ALL_HEADS) -> Tensor:
        distances = (columns - rows[:, None]).abs()
        return -self.table[heads][..., None, None] * distances


class DistanceRule(BiasRule):
    """One learned number per head and distance j − i, cut off beyond the table (Raffel et al. 2020).

    See section 2.1 of the paper. The table is (heads, 2 × reach + 1), from distance −reach to reach.
    """

    name = "t5"
    sizes = ("heads", "distances")

    def scores(self, query: Tensor, rows: Tensor, columns: Tensor, heads: Heads = ALL_HEADS) -> Tensor:
        return self.table[heads][..., clipped_distances(rows, columns, self.table.shape[-1])]


class KeyVectorRule(BiasRule):
    """q_i · a_{j−i} / √d_k with learned vectors a (Shaw et al. 2018, equations 2 and 4).

    The table is (heads, 2 × reach + 1, d_head). The rule first multiplies the queries with all vectors;
    each cell then picks its product, so no tensor of size queries × keys × d_head exists.
    """

    name = "shaw"
    sizes = ("heads", "distances", "d_head")
    divided = True

    def scores(self, query: Tensor, rows: Tensor, columns: Tensor, heads: Heads = ALL_HEADS) -> Tensor:
        products = query @ self.table[heads].transpose(-1, -2) / math.sqrt(query.shape[-1])
        places = clipped_distances(rows, columns, self.table.shape[-2])
        return products.gather(-1, places.expand(*products.shape[:-2], *places.shape))


def clipped_distances(rows: Tensor, columns: Tensor, size: int) -> Tensor:
    """(queries, keys) indices of the clipped distances j − i in a table of ``size``, most negative first."""
    reach = size // 2
    return (columns - rows[:, None]).clamp(-reach, reach) + reach


RULES: dict[str, type[BiasRule]] = {rule.name: rule for rule in (LinearRule, DistanceRule, KeyVectorRule)}


def rule_from(name: str, arrays: dict[str, Tensor], n_heads: int, d_head: int) -> BiasRule:
    """Rebuilds a rule from ``BiasRule.arrays``; ValueError if it is unknown, or its table does not fit."""
    if name not in RULES:
        raise ValueError(f"The bias rule {name!r} is unknown; use one of {', '.join(sorted(RULES))}.")
    rule, table = RULES[name], arrays.get("table")
    known = {"heads": n_heads, "d_head": d_head}
    shape = () if table is None else tuple(table.shape)
    fits = len(shape) == len(rule.sizes) and all(
        size % 2 == 1 if axis == "distances" else size == known.get(str(axis), axis)
        for axis, size in zip(rule.sizes, shape, strict=True)
    )
    if table is None or not fits:
        raise ValueError(
            f"The table of the bias rule {name} must have the axes ({', '.join(map(str, rule.sizes))}) with "
            f"{n_heads} heads, d_head {d_head} and an odd number of distances; it has the sizes {shape}."
        )
    return rule(table)


def alibi_slopes(n_heads: int) -> Tensor:
    """(heads,) float64 slopes (Press et al. 2022, section 3).

    2^(−8/n), 2^(−16/n), … if the number of heads n is a power of two; otherwise the slopes of the next lower
    power of two, then every other slope of the next higher one.
    """
    below = 2 ** int(math.log2(n_heads))
    slopes = _geometric(below)
    return torch.cat([slopes, _geometric(2 * below)[0::2][: n_heads - below]])


def _geometric(n_heads: int) -> Tensor:
    return 2.0 ** (-8 / n_heads * torch.arange(1, n_heads + 1, dtype=torch.float64))


def t5_buckets(distances: Tensor, *, causal: bool, buckets: int = 32, max_distance: int = 128) -> Tensor:
    """The bucket, from 0, of each distance j − i of a key from its query (Raffel et al. 2020).

    Near keys have buckets of their own, far ones share them logarithmically, and from ``max_distance`` on the
    last one. ``causal`` gives all buckets to keys before the query (later keys share the query's own, 0);
    otherwise one half is for keys up to the query, the other for keys after it.
    """
    if causal:
        return _bucket(-distances.clamp(max=0), buckets, max_distance)
    half = buckets // 2
    return _bucket(distances.abs(), half, max_distance) + half * (distances > 0).long()


def _bucket(distances: Tensor, buckets: int, max_distance: int) -> Tensor:
    exact = buckets // 2
    ratio = (distances.double().clamp(min=exact) / exact).log() / math.log(max_distance / exact)
    far = exact + (ratio * (buckets - exact) + 1e-9).long()  # so that a bucket's edge falls into that bucket
    return torch.where(distances < exact, distances, far.clamp(max=buckets - 1))
