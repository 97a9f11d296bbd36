"""An n-gram language model over piece ids: interpolated modified Kneser–Ney smoothing.

Source: Chen and Goodman, "An empirical study of smoothing techniques for language modeling", Computer Speech
and Language 13 (1999), interpolated, with three discounts:

    p(w | h) = max(c(h w) − D(c(h w)), 0) / Σ c(h ·)  +  γ(h) p(w | h without its first piece)

``c`` is how often an n-gram of the highest order occurs. For a lower order, ``c`` is the number of different
pieces that stand before the n-gram; an n-gram that begins with ``<s>`` has nothing before it and keeps its
own count. D is one of three discounts, for counts of 1, of 2 and of 3 or more, which follow from the counts
of counts of the order. γ(h) is the mass that the discounts take from h. A history that was never seen is
shortened. The lowest order is interpolated with an even distribution over all pieces that can be predicted.

An n-gram is known by the number of its first n − 1 pieces and its last piece, packed into one integer, so
each order is one sorted array. N-grams of a text are found for all positions at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from transformer.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Sentences = Sequence[Sequence[int]]
NONE = -1
"""The number of an n-gram that does not occur in the training text."""
FALLBACK = (0.5, 1.0, 1.5)
"""Discounts of an order whose counts of counts give none, as in a very small text."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Sentences one after the other, each between ``<s>`` and ``</s>``."""

    ids: Ints  # (positions,) pieces
    places: Ints  # (positions,) place of each piece in its sentence; 0 is ``<s>``

    @classmethod
    def of(cls, sentences: Sentences) -> Stream:
        """The stream of sentences, which are ids without ``<s>`` and ``</s>``."""
        lengths = np.array([len(sentence) + 2 for sentence in sentences], np.int64)
        ends = np.cumsum(lengths)
        ids = np.empty(lengths.sum(), np.int64)
        inner = np.ones(len(ids), bool)
        inner[ends - 1] = inner[ends - lengths] = False
        ids[ends - lengths], ids[ends - 1] = BOS_ID, EOS_ID
        ids[inner] = np.fromiter(chain.from_iterable(sentences), np.int64, int(inner.sum()))
        return cls(ids, np.arange(len(ids)) - np.repeat(ends - lengths, lengths))


@dataclass(frozen=True, eq=False)
class Order:
    """The n-grams of one order, and what each adds to a probability."""

    keys: Ints  # (n-grams,) sorted; number of the history × vocabulary + last piece
    shares: Floats  # (n-grams,) discounted count over the sum of its history's counts
    left: Floats  # (histories,) γ, the mass left for the order below; 1 for a history without a successor

    def numbers(self, keys: Ints) -> Ints:
        """The numbers of n-grams by their keys (…) → (…); negative keys and unknown n-grams have none."""
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, at, NONE)

    def mixed(self, below: Floats, histories: Ints, numbers: Ints) -> Floats:
        """Probabilities of this order from those of the order below; all (…) or broadcast to it."""
        mixed = self.left[histories] * below + np.where(numbers == NONE, 0.0, self.shares[numbers])
        return np.where(histories == NONE, below, mixed)


class KneserNey:
    """The n-gram model; made by ``train``."""

    def __init__(self, orders: Sequence[Order], vocab_size: int, never: Sequence[int]) -> None:
        """Keeps the orders, from 1 up; ``never`` are the ids that cannot be predicted."""
        self.orders, self.vocab_size = tuple(orders), vocab_size
        even = np.ones(vocab_size)
        even[list(never)] = 0.0
        self._even = even / even.sum()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of different n-grams of each order."""
        return tuple(len(order.keys) for order in self.orders)

    def piece_log_probs(self, sentences: Sentences) -> list[Floats]:
        """Per sentence (pieces + 1,): the natural log of each piece's probability, and of the end's."""
        stream = Stream.of(sentences)
        logs = np.log(self._probabilities(stream)[stream.places > 0])
        return np.split(logs, np.cumsum([len(sentence) + 1 for sentence in sentences])[:-1])

    def log_probs(self, sentences: Sentences) -> Floats:
        """(sentences,) natural logs of the probabilities of whole sentences, their ends included."""
        return np.array([float(logs.sum()) for logs in self.piece_log_probs(sentences)])

    def _probabilities(self, stream: Stream) -> Floats:
        """(positions,) probability of each piece of a stream after those before it in its sentence."""
        found = self._even[stream.ids]
        histories = np.zeros(len(stream.ids), np.int64)
        for order in self.orders:
            numbers = order.numbers(keys_of(histories, stream.ids, self.vocab_size))
            found = order.mixed(found, histories, numbers)
            histories = before(numbers, stream)
        return found


def keys_of(histories: Ints, ids: Ints, vocab_size: int) -> Ints:
    """(positions,) the keys of n-grams from the numbers of their histories and their last pieces."""
    return np.where(histories == NONE, NONE, histories * vocab_size + ids)


def before(numbers: Ints, stream: Stream) -> Ints:
    """(positions,) the n-gram that ends one position earlier; none if that is in another sentence."""
    return np.where(stream.places > 0, np.concatenate([[NONE], numbers[:-1]]), NONE)


def train(
    sentences: Sentences,  # ids without ``<s>`` and ``</s>``; at least one sentence
    vocab_size: int,  # number of pieces
    order: int = 5,  # number of pieces of the longest n-grams
    never: Sequence[int] = (PAD_ID, BOS_ID),  # ids that the model gives the probability 0
) -> KneserNey:
    """Counts n-grams of 1 to ``order`` pieces and smooths them; ValueError without any sentence or order."""
    if not sentences or order < 1:
        raise ValueError(f"An n-gram model of order {order} cannot be made from {len(sentences)} sentences.")
    counted = _counted(Stream.of(sentences), vocab_size, order)
    counts = [_adjusted(low, high) for low, high in pairwise(counted)]
    counts.append(counted[-1].counts)
    counts[0] = np.where(counted[0].keys == BOS_ID, 0, counts[0])
    histories = [1, *(len(each.keys) for each in counted)]
    smoothed = [
        smooth(each.keys, count, vocab_size, size)
        for each, count, size in zip(counted, counts, histories, strict=False)
    ]
    return KneserNey(smoothed, vocab_size, never)


@dataclass(frozen=True, eq=False)
class _Counted:
    """The n-grams of one order; all (n-grams,)."""

    keys: Ints  # as in ``Order``
    counts: Ints  # how often each occurs
    suffixes: Ints  # number of each n-gram without its first piece, among those of the order below
    starts: NDArray[np.bool_]  # whether it begins with ``<s>``


def _counted(stream: Stream, vocab_size: int, order: int) -> list[_Counted]:
    """The n-grams of the orders 1 to ``order``."""
    found: list[_Counted] = []
    histories = lower = np.zeros(len(stream.ids), np.int64)
    for size in range(1, order + 1):
        inside = np.flatnonzero(histories != NONE)
        keys = keys_of(histories[inside], stream.ids[inside], vocab_size)
        unique, first, inverse, counts = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        at = inside[first]
        found.append(_Counted(unique, counts, lower[at], stream.places[at] == size - 1))
        lower = np.full(len(stream.ids), NONE)
        lower[inside] = inverse
        histories = before(lower, stream)
    return found


def _adjusted(low: _Counted, high: _Counted) -> Ints:
    """(n-grams,) number of different pieces before each n-gram; its own count if it begins with ``<s>``."""
    return np.where(low.starts, low.counts, np.bincount(high.suffixes, minlength=len(low.keys)))


def smooth(keys: Ints, counts: Ints, vocab_size: int, histories: int) -> Order:
    """The probabilities of one order from its n-grams and adjusted counts (n-grams,).

    ``histories`` is the number of n-grams of the order below.
    """
    taken = np.minimum(np.array([0.0, *discounts(counts)])[np.minimum(counts, 3)], counts)
    whose = keys // vocab_size
    totals = np.bincount(whose, counts, minlength=histories)
    lost = np.bincount(whose, taken, minlength=histories)
    left = np.divide(lost, totals, out=np.ones(histories), where=totals > 0)
    shares = np.divide(counts - taken, totals[whose], out=np.zeros(len(keys)), where=totals[whose] > 0)
    return Order(keys, shares, left)


def discounts(counts: Ints) -> tuple[float, float, float]:
    """D1, D2 and D3+ of one order, from its counts of counts."""
    n1, n2, n3, n4 = (int((counts == k).sum()) for k in range(1, 5))
    if not (n1 and n2 and n3 and n4):
        return FALLBACK
    y = n1 / (n1 + 2 * n2)
    found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    return found if all(0 <= discount <= k for k, discount in enumerate(found, 1)) else FALLBACK
