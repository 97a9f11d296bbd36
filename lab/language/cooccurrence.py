"""Company of pieces: positive pointwise mutual information (PPMI), and neighbours by it.

Church and Hanks 1990 for the measure; Levy, Goldberg and Dagan, "Improving distributional similarity with
lessons learned from word embeddings", TACL 2015, for the form used here. For a piece w and a piece c at most
five places away in the same sentence,

    PPMI(w, c) = max(0, ln p(w, c) / (p(w) p'(c))),    p'(c) ∝ n(c)^0.75

The power is their context distribution smoothing (``smoothing=1`` switches it off): without it, rare contexts
get the highest values. A row of the table describes a piece by the company that it keeps; two pieces are near
if the cosine of their rows is large. The table is kept as its entries above zero, so no matrix is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from lab.language.embeddings import Floats, Ints, Neighbours, nearest

WINDOW = 5
SMOOTHING = 0.75


@dataclass(frozen=True, eq=False)
class Cooccurrence:
    """A sparse table of PPMI; its rows and columns are pieces."""

    rows: Ints  # (entries,) piece of each entry
    columns: Ints  # (entries,) piece near it
    values: Floats  # (entries,) PPMI in nats, above 0
    counts: Ints  # (vocabulary,) how often each piece occurs

    def vectors(self, chosen: Sequence[int]) -> Floats:
        """(pieces, vocabulary) rows of the table, of length 1; zeros for a piece without entries."""
        at = np.full(len(self.counts), -1)
        at[list(chosen)] = np.arange(len(chosen))
        mine = at[self.rows] >= 0
        found = np.zeros((len(chosen), len(self.counts)))
        found[at[self.rows[mine]], self.columns[mine]] = self.values[mine]
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return found / np.where(lengths > 0, lengths, 1)

    def cosines(self, chosen: Sequence[int]) -> Floats:
        """(pieces, vocabulary) cosine of the rows of some pieces with those of all; 0 for empty rows."""
        size = len(self.counts)
        lengths = np.sqrt(np.bincount(self.rows, self.values**2, minlength=size))
        lengths[lengths == 0] = 1
        dots = [
            np.bincount(self.rows, self.values * vector[self.columns], minlength=size)
            for vector in self.vectors(chosen)
        ]
        return np.stack(dots) / lengths

    def neighbours(self, chosen: Sequence[int], candidates: Sequence[int], k: int = 10) -> Neighbours:
        """The k candidates that keep the most similar company; rare ones have unsteady rows."""
        return nearest(self.cosines(chosen)[:, list(candidates)], chosen, candidates, k)


def cooccurrence(
    # ids of each sentence, without ``<s>`` and ``</s>``; a negative id is a gap that counts as nothing
    sentences: Sequence[Sequence[int]],
    vocab_size: int,  # number of pieces
    window: int = WINDOW,  # places to each side
    smoothing: float = SMOOTHING,  # power of the counts of contexts
) -> Cooccurrence:
    """Counts which pieces stand at most ``window`` places from which, and weighs the counts."""
    lengths = [len(sentence) for sentence in sentences]
    ids = np.fromiter(chain.from_iterable(sentences), np.int64, sum(lengths))
    whose = np.repeat(np.arange(len(lengths)), lengths)
    keys, near = _pairs(ids, whose, vocab_size, window)
    rows, columns = np.divmod(keys, vocab_size)
    words = np.bincount(rows, near, minlength=vocab_size)
    contexts = np.bincount(columns, near, minlength=vocab_size) ** smoothing
    contexts = contexts / max(contexts.sum(), 1.0)
    values = np.log(near / (words[rows] * contexts[columns]))
    kept = values > 0
    counts = np.bincount(ids[ids >= 0], minlength=vocab_size)
    return Cooccurrence(rows[kept], columns[kept], values[kept], counts)


def _pairs(ids: Ints, whose: Ints, vocab_size: int, window: int) -> tuple[Ints, Ints]:
    """Different ordered pairs of near pieces, packed as row × vocabulary + column, and their counts."""
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for distance in range(1, window + 1):
        left, right = ids[:-distance], ids[distance:]
        near = (whose[:-distance] == whose[distance:]) & (left >= 0) & (right >= 0)
        left, right = left[near], right[near]
        for one, other in ((left, right), (right, left)):
            new, found = np.unique(one * vocab_size + other, return_counts=True)
            keys, at = np.unique(np.concatenate([keys, new]), return_inverse=True)
            sums = np.bincount(at, np.concatenate([counts, found]), minlength=len(keys))
            counts = sums.astype(np.int64)
    return keys, counts
