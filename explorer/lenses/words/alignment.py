"""Word alignments from cross-attention, of words by sums over source and means over target
pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.words.links import GoldPair, Links
from explorer.lenses.words.reading import Rows, merge_words
from transformer.config import AttentionKind
from transformer.text.words import Group

if TYPE_CHECKING:
    from transformer.run import Translation

Rule = Literal["strongest", "mutual"]


class AlignmentScore(NamedTuple):
    """Agreement of links with the gold links, over all sentences together (Och and Ney 2003)."""

    aer: float  # alignment error rate, 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
    precision: float  # |A ∩ P| / |A|
    recall: float  # |A ∩ S| / |S|
    links: int  # number of links found, |A|

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> AlignmentScore:
        """The score of what was counted (``agreement``), or the sum of several."""
        links, sure, links_sure, links_possible = counts.tolist()
        return cls(
            aer=float(error_rate(counts)),
            precision=links_possible / max(1, links),
            recall=links_sure / max(1, sure),
            links=links,
        )


def agreement(links: Links, gold: GoldPair) -> NDArray[np.int64]:
    """|A|, |S|, |A ∩ S|, |A ∩ P| of one alignment of a pair."""
    return np.array(
        [len(links), len(gold.sure), len(links & gold.sure), len(links & gold.possible)]
    )


def error_rate(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(…) the alignment error rate of counts (…, 4), as ``agreement`` gives them."""
    links = counts[..., :2].sum(-1)
    agreed = counts[..., 2:].sum(-1)
    return 1 - agreed / np.maximum(1, links)


@dataclass(frozen=True)
class Aligner:
    """A head of cross-attention, or the mean of several, from which links between words are
    read."""

    heads: tuple[tuple[int, int], ...]  # layer and head of each, from 0; at least one
    rows: Rows  # whether the row of a token is the one that predicts it or the one that reads it

    def weights(self, run: Translation) -> NDArray[np.float32]:
        """(queries, keys): row t belongs to target token t, as in ``rows_of_targets``."""
        maps = [run.weights(AttentionKind.CROSS, layer, head) for layer, head in self.heads]
        return rows_of_targets(np.mean(maps, axis=0, dtype=np.float32), self.rows)


def score(alignments: Iterable[Links], gold: Sequence[GoldPair]) -> AlignmentScore:
    """Scores one alignment per gold pair, all pairs together; ValueError if their numbers
    differ."""
    counts = [agreement(links, pair) for links, pair in zip(alignments, gold, strict=True)]
    return AlignmentScore.of(np.sum(counts, axis=0))


def diagonal(pair: GoldPair) -> Links:
    """A baseline without attention: links each target word to the source word at its relative
    position."""
    n_source = len(pair.source)
    n_target = len(pair.target)
    return frozenset(((2 * j + 1) * n_source // (2 * n_target), j) for j in range(n_target))


def word_weights(
    weights: NDArray[np.float32], source: Sequence[Group], target: Sequence[Group], *, rows: Rows
) -> NDArray[np.float32]:
    """(…, target words, source words) cross-attention between words."""
    return merge_words(rows_of_targets(weights, rows), target, source)


def rows_of_targets(
    weights: NDArray[
        np.float32
    ],  # (…, queries, keys) cross-attention; row t predicts target token t
    # With "read", the row that reads token t, which is row t + 1. No row reads the last token; its
    # row is 0.
    rows: Rows,
) -> NDArray[np.float32]:
    """Puts the row of target token t at place t."""
    if rows == "predicted":
        return weights
    unread = np.zeros_like(weights[..., :1, :])
    return np.concatenate([weights[..., 1:, :], unread], axis=-2)


def text_words(groups: Iterable[Group]) -> list[Group]:
    """The groups that stand for text; only these can be linked."""
    return [group for group in groups if not group.special]


def link_words(
    weights: NDArray[np.float32],  # (heads, target words, source words)
    # "strongest" links every target word to its strongest source word; "mutual" keeps only links
    # that are also strongest from the source word (the intersection of both directions)
    rule: Rule = "strongest",
) -> list[Links]:
    """The links that attention between words implies, per head; a target word without weight has
    none."""
    chosen = weights > 0
    for axis in (-1, -2)[: 1 + (rule == "mutual")]:
        strongest = np.zeros(weights.shape, dtype=bool)  # the first largest weight along the axis
        np.put_along_axis(strongest, np.expand_dims(weights.argmax(axis), axis), True, axis)
        chosen &= strongest
    return [frozenset((int(i), int(j)) for j, i in np.argwhere(head)) for head in chosen]
