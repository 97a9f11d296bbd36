"""Word alignments from cross-attention, and their error against links made by hand.

By default, a target word is aligned to the source word that gets most of its attention. Attention on the
source's `</s>` is left out. The weight of a word pair is the sum over the pieces of the source word and
the mean over the pieces of the target word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from transformer.lenses.reading import Rows
from transformer.model.sites import AttentionKind
from transformer.text.pairs import TRUSTED, Bounds, DataError, read_lines
from transformer.text.words import Group, is_special, word_groups

Links = frozenset[tuple[int, int]]
Rule = Literal["strongest", "mutual", "above"]
_LINK = re.compile(r"(\d{1,9})([-p])(\d{1,9})", re.ASCII)


@dataclass(frozen=True)
class GoldPair:
    """A sentence pair with links made by hand; words count from 0.

    Attributes:
        source: Source words.
        target: Target words.
        sure: (source word, target word) links that an alignment should have.
        possible: Links that it may have, including the sure links.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: Links
    possible: Links


@dataclass(frozen=True)
class AlignmentScore:
    """How well links fit the gold links, over all sentences together (Och and Ney 2003).

    Attributes:
        aer: Alignment error rate, 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|).
        precision: |A ∩ P| / |A|.
        recall: |A ∩ S| / |S|.
        links: Number of links found, |A|.
    """

    aer: float
    precision: float
    recall: float
    links: int


class Weighted(Protocol):
    """A run whose attention weights are known."""

    def weights(self, kind: AttentionKind, layer: int, head: int) -> NDArray[np.float32]:
        """(queries, keys) of a head."""


@dataclass(frozen=True)
class Aligner:
    """A head of cross-attention, or the mean of several, from which links between words are read.

    Attributes:
        heads: Layer and head of each, from 0; at least one.
        rows: Whether the row of a token is the one that predicts it or the one that reads it.
    """

    heads: tuple[tuple[int, int], ...]
    rows: Rows

    def weights(self, run: Weighted) -> NDArray[np.float32]:
        """(queries, keys): row t belongs to target token t, as in ``rows_of_targets``."""
        each = [run.weights(AttentionKind.CROSS, layer, head) for layer, head in self.heads]
        return rows_of_targets(np.mean(each, axis=0, dtype=np.float32), self.rows)


def read_gold(path: str | Path, bounds: Bounds = TRUSTED) -> list[GoldPair]:
    """Reads `source<TAB>target<TAB>links` lines; `i-j` is a sure link, `ipj` a possible one, source first.

    Raises:
        DataError: A line does not have this form, a link points outside its sentence, or the file exceeds
            the bounds.
    """
    pairs = [_gold_pair(f"{path}:{number}", line) for number, line in read_lines(path, bounds)]
    if not pairs:
        raise DataError(
            f"{path}: the file is empty; it needs one `source<TAB>target<TAB>links` line per pair."
        )
    return pairs


def _gold_pair(place: str, line: str) -> GoldPair:
    columns = line.split("\t")
    if len(columns) != 3:
        raise DataError(f"{place}: expected source, tab, target, tab, links; found {len(columns)} columns.")
    source, target = tuple(columns[0].split()), tuple(columns[1].split())
    if not source or not target:
        raise DataError(f"{place}: the {'target' if source else 'source'} is empty.")
    links: dict[str, set[tuple[int, int]]] = {"-": set(), "p": set()}
    for text in columns[2].split():
        match = _LINK.fullmatch(text)
        if not match:
            raise DataError(
                f"{place}: {text[:40]!r} is not a link; write 3-4 for a sure link or 3p4 for a possible one."
            )
        link = int(match[1]), int(match[3])
        if link[0] >= len(source) or link[1] >= len(target):
            raise DataError(f"{place}: the link {text} points outside the sentence; words count from 0.")
        links[match[2]].add(link)
    return GoldPair(source, target, frozenset(links["-"]), frozenset(links["-"] | links["p"]))


def score(alignments: Iterable[Links], gold: Sequence[GoldPair]) -> AlignmentScore:
    """Scores one alignment per gold pair, all pairs together.

    Raises:
        ValueError: The numbers of alignments and pairs differ.
    """
    found = sure = sure_found = possible_found = 0
    for links, pair in zip(alignments, gold, strict=True):
        found += len(links)
        sure += len(pair.sure)
        sure_found += len(links & pair.sure)
        possible_found += len(links & pair.possible)
    error = 1 - (sure_found + possible_found) / max(1, found + sure)
    return AlignmentScore(error, possible_found / max(1, found), sure_found / max(1, sure), found)


def diagonal(pair: GoldPair) -> Links:
    """A baseline without attention: links each target word to the source word at its relative position."""
    n_source, n_target = len(pair.source), len(pair.target)
    return frozenset(((2 * j + 1) * n_source // (2 * n_target), j) for j in range(n_target))


def merge_words(
    weights: NDArray[np.float32], queries: Sequence[Group], keys: Sequence[Group]
) -> NDArray[np.float32]:
    """Attention between words: summed over key pieces, averaged over query pieces; rows keep their sum.

    Args:
        weights: (…, query pieces, key pieces).
        queries: Words of the rows.
        keys: Words of the columns.

    Returns:
        (…, query words, key words).
    """
    columns = [weights[..., group.start : group.stop].sum(-1) for group in keys]
    merged = np.stack(columns, axis=-1)
    rows = [merged[..., group.start : group.stop, :].mean(-2) for group in queries]
    return np.stack(rows, axis=-2)


def word_weights(
    weights: NDArray[np.float32], source: Sequence[Group], target: Sequence[Group], *, rows: Rows
) -> NDArray[np.float32]:
    """Cross-attention between words.

    Args:
        weights: (…, queries, keys) cross-attention; row t reads the decoder input t and predicts target
            token t.
        source: Words of the source, as groups of its pieces.
        target: Words of the target, as groups of its pieces.
        rows: With "predicted", a target word has the attention of the rows that predict its pieces. With
            "read", it has the attention of the rows that read them, one row later. A word that no row reads
            (the last piece of a truncated translation) has no weight.

    Returns:
        (…, target words, source words).
    """
    return merge_words(rows_of_targets(weights, rows), target, source)


def rows_of_targets(weights: NDArray[np.float32], rows: Rows) -> NDArray[np.float32]:
    """Puts the row of target token t at place t.

    Args:
        weights: (…, queries, keys) cross-attention; row t predicts target token t.
        rows: With "read", the row that reads token t, which is row t + 1. No row reads the last token; its
            row is 0.
    """
    if rows == "predicted":
        return weights
    unread = np.zeros_like(weights[..., :1, :])
    return np.concatenate([weights[..., 1:, :], unread], axis=-2)


def text_words(groups: Iterable[Group]) -> list[Group]:
    """The groups that stand for text; only these can be linked."""
    return [group for group in groups if not is_special(group.text)]


def link_words(weights: NDArray[np.float32], rule: Rule = "strongest", least: float = 0.0) -> list[Links]:
    """The links that attention between words implies.

    Args:
        weights: (heads, target words, source words).
        rule: "strongest" links every target word to its strongest source word; "mutual" keeps only links that
            are also strongest from the source word (the intersection of both directions); "above" links
            every pair with a weight of at least `least`.
        least: Smallest weight for "above", from 0 to 1.

    Returns:
        One alignment per head; a target word without any weight has no link.
    """
    chosen = weights >= least if rule == "above" else _strongest(weights, -1)
    if rule == "mutual":
        chosen &= _strongest(weights, -2)
    return [frozenset((int(i), int(j)) for j, i in np.argwhere(head)) for head in chosen & (weights > 0)]


def _strongest(weights: NDArray[np.float32], axis: int) -> NDArray[np.bool_]:
    """Marks the first largest weight along an axis."""
    chosen = np.zeros(weights.shape, dtype=bool)
    np.put_along_axis(chosen, np.expand_dims(weights.argmax(axis), axis), True, axis)
    return chosen


def attention_links(
    weights: NDArray[np.float32], source_tokens: Sequence[str], target_tokens: Sequence[str], *, rows: Rows
) -> list[Links]:
    """Alignments of the heads of one layer: each target word to its strongest source word.

    Args:
        weights: (heads, queries, keys) cross-attention.
        source_tokens: Pieces of the source, ending in `</s>`.
        target_tokens: Pieces of the target, ending in `</s>`.
        rows: As in `word_weights`.

    Returns:
        One alignment per head; words are separated by spaces and count from 0.
    """
    source, target = (text_words(word_groups(tokens)) for tokens in (source_tokens, target_tokens))
    return link_words(word_weights(weights, source, target, rows=rows))
