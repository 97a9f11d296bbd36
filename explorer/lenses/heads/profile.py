"""What each head of a kind does beyond one sentence: its tokens, its distances, its sentences in order.

Key weight is compared with what even attention over the visible keys gives the same token, so that a frequent
token, or one that many rows can see, has no advantage. A row's selectivity is 1 − entropy / log visible keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.heads.measures import SORTED, UNITS
from explorer.lenses.heads.statistics import Floats, HeadsOfKind
from explorer.lenses.words.groups import reading_groups
from transformer.text.words import EOS, Group, readable

Ints = NDArray[np.int64]
FAR = 16
"""Farthest distance with a bar of its own; the last bars hold it and all beyond."""
MOST = 8
"""Most tokens in a list of a head."""
LEAST = 3
"""Fewest occurrences of a token that is in a list."""
SHOWN = 15
"""Sentences that are kept of an order: three of each fifth."""


@dataclass(frozen=True, eq=False)
class Profile:
    """All heads of one kind over many sentences; layers and heads count from 0."""

    means: dict[str, Floats]  # maps each statistic to (layers, heads), over all rows
    kept: Floats  # (layers, heads) share of the sentences that show the role of a head
    distances: Floats  # (layers, heads, 2 FAR + 1) share of the weight at query − key = −FAR … FAR
    chance: Floats  # (layers, 2 FAR + 1) the same for even weights over the visible keys
    # (SORTED, layers, heads, SHOWN) numbers of sentences from the largest value to the smallest; −1 for none
    sentences: Ints
    values: Floats  # of those, the value
    marked: Ints  # of those, the row with the largest value (in the lower half, the smallest); −1 if unknown
    tokens: Ints  # (UNITS, LISTS, layers, heads, MOST) places in the vocabulary of the unit; −1 for none
    told: Floats  # (…, 2) of those, share of the weight and lift, or mean selectivity and ratio to the head's
    vocabulary: dict[str, list[str]]  # by unit, the tokens that are in a list
    counts: dict[str, list[list[int]]]  # by unit, occurrences of each as a key and as a query


class _ByToken:
    """Values of heads, summed over all occurrences of each token."""

    def __init__(self, *shape: int) -> None:
        self.place: dict[str, int] = {}
        self.sums = np.zeros((*shape, 256), np.float32)
        self.counts = np.zeros(256, np.float32)

    def add(self, tokens: Sequence[str], values: Floats, counts: Floats) -> None:
        """Adds the tokens of a sentence, with their values (…, tokens), each as part of one occurrence."""
        at = [self.place.setdefault(token, len(self.place)) for token in tokens]
        while len(self.place) > len(self.counts):
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)], -1)
            self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])
        there, inverse = np.unique(at, return_inverse=True)
        members = np.eye(len(there), dtype=np.float32)[inverse]
        self.sums[..., there] += values @ members
        self.counts[there] += counts @ members


def _units(pieces: Sequence[str]) -> dict[str, list[Group]]:
    return {
        "words": list(reading_groups(pieces)),
        "pieces": [Group(i, i + 1, readable(each)) for i, each in enumerate(pieces)],
    }


class Profiler:
    """Collects what the heads of one kind do, sentence by sentence."""

    def __init__(self, layers: int, heads: int) -> None:
        self._distances = np.zeros((layers, heads, 2 * FAR + 1), np.float32)
        self._chance = np.zeros((layers, 2 * FAR + 1), np.float32)
        self._weight, self._selective = ({unit: _ByToken(layers, heads) for unit in UNITS} for _ in range(2))
        self._even = {unit: _ByToken(layers) for unit in UNITS}
        self._ends, self._ended = np.zeros((layers, heads), np.float32), 0
        # by sentence and statistic, (layers, heads) the row with the largest value, and with the smallest
        self._marked: tuple[list[dict[str, Ints]], list[dict[str, Ints]]] = [], []

    def add(self, reading: HeadsOfKind, queries: Sequence[str], keys: Sequence[str]) -> None:
        """Adds a sentence with the pieces of its rows and columns; rows that see one key say nothing."""
        seen = np.flatnonzero((reading.mask.sum(-1) > 1).all(0))
        weights, mask = reading.weights[:, :, seen], reading.mask[:, seen]
        even = mask / np.maximum(1, mask.sum(-1, keepdims=True))
        distance = (seen[:, None] - np.arange(len(keys))).clip(-FAR, FAR) + FAR
        bars = np.eye(2 * FAR + 1, dtype=np.float32)[distance.ravel()]
        self._distances += weights.reshape(*weights.shape[:2], -1) @ bars
        self._chance += even.reshape(len(even), -1) @ bars
        selective = np.nan_to_num(1 - reading.rows["entropy"])
        visible = np.isin(np.arange(len(queries)), seen)
        for unit, groups in _units(keys).items():
            tokens, part = _spread(groups)
            self._weight[unit].add(tokens, weights.sum(2), part)
            self._even[unit].add(tokens, even.sum(1).astype(np.float32), part)
        for unit, groups in _units(queries).items():
            tokens, part = _spread(groups)
            part = part * visible
            self._selective[unit].add(tokens, selective * part, part)
        ends = np.array([key == EOS for key in keys])
        if reading.lengths is not None and ends.any() and not ends.all():
            others = reading.lengths[..., ~ends].mean(-1)
            self._ends += reading.lengths[..., ends].mean(-1) / np.maximum(others, 1e-9)
            self._ended += 1
        filled = {name: reading.rows[name] for name in SORTED if name in reading.rows}
        for sign, found in zip((1, -1), self._marked, strict=True):
            signed = {name: np.nan_to_num(sign * rows, nan=-np.inf) for name, rows in filled.items()}
            found.append({name: rows.argmax(-1) for name, rows in signed.items()})

    def means(self) -> dict[str, Floats]:
        """`eos_value`, (layers, heads), if any keys end with `</s>`."""
        return {"eos_value": self._ends / np.float32(self._ended)} if self._ended else {}

    def profile(
        self,
        means: dict[str, Floats],  # the statistics over all rows
        kept: Floats,  # as in `Profile`
        orders: Mapping[str, Floats],  # by name of `SORTED`, (sentences, layers, heads); NaN: left out
    ) -> Profile:
        """The profile of the sentences so far; sentences that orders name beyond them have no marked row."""
        total = self._chance.sum(-1, keepdims=True)
        ranked = zip(*(self._ranked(name, orders.get(name)) for name in SORTED), strict=True)
        sentences, values, marked = map(np.stack, ranked)
        lists = {unit: self._lists(unit) for unit in UNITS}
        vocabulary, counts, places = {}, {}, []
        for unit, (names, found, _) in lists.items():
            used = np.unique(found[found >= 0])
            order = np.full(max(len(names), 1) + 1, -1)
            order[used] = np.arange(len(used))
            places.append(order[found])
            vocabulary[unit] = [names[i] for i in used]
            counts[unit] = self._counts(unit, vocabulary[unit])
        return Profile(
            means,
            kept,
            self._distances / np.maximum(self._distances.sum(-1, keepdims=True), 1e-9),
            self._chance / np.maximum(total, 1e-9),
            sentences,
            values,
            marked,
            np.stack(places),
            np.stack([told for *_, told in lists.values()]),
            vocabulary,
            counts,
        )

    def _ranked(self, name: str, values: Floats | None) -> tuple[Ints, Floats, Ints]:
        """Sentences, values and rows (layers, heads, SHOWN) of evenly spaced ranks of one order."""
        shape = (*self._distances.shape[:2], SHOWN)
        if values is None or not len(values):
            return np.full(shape, -1), np.zeros(shape, np.float32), np.full(shape, -1)
        order, many = np.argsort(-values, axis=0), (~np.isnan(values)).sum(0)
        ranks = np.rint(np.linspace(0, 1, SHOWN)[:, None, None] * (many - 1)).astype(int).clip(0)
        chosen = np.take_along_axis(order, ranks, 0)
        shown = np.take_along_axis(values, chosen, 0)
        again = np.concatenate([np.zeros((1, *many.shape), bool), ranks[1:] == ranks[:-1]]) | (many == 0)
        source = "peak" if name == "role" else name
        marked = [np.stack([each[source] for each in found]) for found in self._marked]
        upper = np.arange(SHOWN)[:, None, None] <= SHOWN // 2
        inside = chosen.clip(0, len(marked[0]) - 1)
        rows = np.where(upper, *(np.take_along_axis(each, inside, 0) for each in marked))
        rows = np.where(again | (chosen >= len(marked[0])), -1, rows)
        found = np.where(again, -1, chosen), np.nan_to_num(shown).astype(np.float32), rows
        return tuple(np.moveaxis(each, 0, -1) for each in found)  # type: ignore[return-value]

    def _lists(self, unit: str) -> tuple[list[str], Ints, Floats]:
        """Tokens of a unit, and (LISTS, layers, heads, MOST) places among them, with two values of each."""
        weight, even, selective = self._weight[unit], self._even[unit], self._selective[unit]
        names = [*dict.fromkeys([*weight.place, *selective.place])]
        index = {name: i for i, name in enumerate(names)}
        size = len(weight.place)
        share = weight.sums[..., :size] / np.maximum(weight.sums.sum(-1, keepdims=True), 1e-9)
        chance = even.sums[:, None, :size] / np.maximum(even.sums.sum(-1)[:, None, None], 1e-9)
        lift = (share / np.maximum(chance, 1e-9)).astype(np.float32)
        asked = len(selective.place)
        rows = selective.counts[:asked]
        mean = selective.sums[..., :asked] / np.maximum(rows, 1e-9)
        ratio = mean / np.maximum((selective.sums.sum(-1) / max(rows.sum(), 1e-9))[..., None], 1e-9)
        often, often_asked = weight.counts[:size] >= LEAST - 0.5, rows >= LEAST - 0.5
        to_names = np.array([index[name] for name in selective.place], int)
        found = [
            _top(share, often, (share, lift)),
            _top(lift, often, (share, lift)),
            _top(mean.astype(np.float32), often_asked, (mean.astype(np.float32), ratio.astype(np.float32))),
        ]
        places = [found[0][0], found[1][0], np.where(found[2][0] < 0, -1, to_names[found[2][0]])]
        return names, np.stack(places), np.stack([told for _, told in found])

    def _counts(self, unit: str, names: Sequence[str]) -> list[list[int]]:
        return [
            [round(float(each.counts[each.place[name]])) if name in each.place else 0 for name in names]
            for each in (self._weight[unit], self._selective[unit])
        ]


def _spread(groups: Sequence[Group]) -> tuple[list[str], Floats]:
    """For every piece, the text of its group, and its part of one occurrence of it."""
    texts = [group.text for group in groups for _ in group.indices]
    return texts, np.array([1 / len(group.indices) for group in groups for _ in group.indices], np.float32)


def _top(by: Floats, often: NDArray[np.bool_], values: tuple[Floats, Floats]) -> tuple[Ints, Floats]:
    """(layers, heads, MOST) places of the largest, −1 where there are too few, and both values of each."""
    allowed = np.flatnonzero(often)
    best = np.full((*by.shape[:2], MOST), -1)
    if count := min(MOST, len(allowed)):
        found = np.argsort(-by[..., allowed], axis=-1, kind="stable")[..., :count]
        best[..., :count] = allowed[found]
    inside = best.clip(0)
    told = [np.take_along_axis(each, inside, -1) if each.size else 0 * inside for each in values]
    return best, np.where(best[..., None] < 0, 0, np.stack(told, -1)).astype(np.float32)
