"""What a head tells of a sentence: links of words, the most telling step, glosses, claims of
examples."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.words.groups import (
    CONTENT,
    FUNCTION,
    SOURCE_LANGUAGES,
    TARGET_LANGUAGES,
    find_word,
    reading_groups,
    sorts_of,
)
from explorer.lenses.words.reading import merge_words
from transformer.config import AttentionKind, Head
from transformer.run import Translation
from transformer.text.words import Group

CLEAR = 0.5
"""From this weight on, one source word holds most of a row."""
_NEAR = 0.2
"""Added to the distance of a link, so that a link on the diagonal counts, too."""


class WordLink(NamedTuple):
    """A target word and a source word, each the strongest for the other."""

    target: Group  # the pieces of the target word
    source: Group  # the pieces of the source word
    weight: float  # the attention of the target word on the source word, from 0 to 1
    distance: float  # of the source word from the diagonal, as a share of the source, from 0 to 1


def links(
    weights: NDArray[np.float32], source_tokens: Sequence[str], targets: Sequence[Group]
) -> dict[int, WordLink]:
    """Target and source words strongest for each other, by the first piece of the target word.

    Content words compete among themselves.
    """
    sources = reading_groups(source_tokens)
    if not targets or not sources:
        return {}
    merged = merge_words(weights, targets, sources)
    by_start = {}
    content = np.array(sorts_of(targets, TARGET_LANGUAGES)) == CONTENT
    source_sorts = sorts_of(sources, SOURCE_LANGUAGES)
    for row, target in enumerate(targets):
        best = int(merged[row].argmax())
        source = sources[best]
        rivals = merged[content if content[row] else slice(None), best]
        if source_sorts[best] >= FUNCTION and merged[row, best] >= rivals.max():
            distance = abs(source.start / len(source_tokens) - target.start / len(weights))
            by_start[target.start] = WordLink(target, source, float(merged[row, best]), distance)
    return by_start


def text_words(tokens: Sequence[str]) -> list[Group]:
    """The words of a target, without marks and special tokens."""
    groups = reading_groups(tokens)
    sorts = sorts_of(groups, TARGET_LANGUAGES)
    return [group for group, sort in zip(groups, sorts, strict=True) if sort >= FUNCTION]


def telling_step(
    weights: NDArray[np.float32],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    aligned: NDArray[np.float32] | None = None,
) -> int:
    """The step (from 0) with the most telling link: of content words, away from the diagonal, if
    any."""
    words = [replace(word, stop=word.start + 1) for word in text_words(target_tokens)]
    linked = links(weights, source_tokens, words)
    known = linked if aligned is None else links(aligned, source_tokens, words)

    partners = [link.source for link in linked.values()]
    partner_sorts = dict(zip(partners, sorts_of(partners, SOURCE_LANGUAGES), strict=True))

    def merit(word: Group, sort: int) -> tuple[int, float]:
        """First the sort of a word and that of its partner, then its link."""
        link = linked.get(word.start)
        aligner_link = known.get(word.start)
        if link is None or aligner_link is None or link.source != aligner_link.source:
            return sort, 0.0
        if sort < CONTENT or partner_sorts[link.source] < CONTENT:
            return sort, link.weight * _NEAR
        return sort + 1 + (link.weight >= CLEAR), link.weight * (_NEAR + link.distance)

    groups = reading_groups(target_tokens)
    sorts = sorts_of(groups, TARGET_LANGUAGES)
    merits = [merit(word, sort) for word, sort in zip(groups, sorts, strict=True)]
    return groups[merits.index(max(merits))].start if groups else 0


def telling_row(weights: NDArray[np.float32], tokens: Sequence[str]) -> int:
    """The token (from 0) of a text whose row has the largest weight on another of its words.

    Of (tokens, tokens) weights; numbers that are none count as 0, and a text without words opens
    at its first token.
    """
    words = text_words(tokens)
    if not words:
        return 0
    merged = np.nan_to_num(merge_words(weights, words, words))
    np.fill_diagonal(merged, 0.0)
    return words[int(merged.max(1).argmax())].start


def glosses(
    weights: NDArray[np.float32], source_tokens: Sequence[str], target_tokens: Sequence[str]
) -> dict[int, str]:
    """The source word behind each linked target word, by the position (from 0) of the word's first
    piece."""
    by_start = links(weights, source_tokens, text_words(target_tokens))
    return {start: link.source.text for start, link in by_start.items()}


def heads_that_show(run: Translation, target: str, source: str, least: float) -> dict[Head, float]:
    """Heads whose row predicting a word looks most, and so much, at a source word; the strongest
    first.

    With their weight on the source word, all its pieces together.
    """
    row = find_word(run.target_tokens, target)
    keys = find_word(run.source_tokens, source)
    if row is None or keys is None or run.attention is None:
        return {}
    showing = {}
    for layer in range(run.config.sites[AttentionKind.CROSS].n_layers):
        for head, weights in enumerate(
            run.attention.weights(AttentionKind.CROSS, layer)[:, row[0]]
        ):
            weight = float(weights[keys[0] : keys[1] + 1].sum())
            if keys[0] <= int(np.argmax(weights)) <= keys[1] and weight >= least:
                showing[layer, head] = weight
    return dict(sorted(showing.items(), key=lambda entry: -entry[1]))


def shared_heads(claims: Sequence[dict[Head, float]]) -> list[Head | None]:
    """One head for each claim, so that one head shows as many as possible; None if no head shows
    it."""
    every = {
        head: [claim[head] for claim in claims if head in claim]
        for heads in claims
        for head in heads
    }
    most = max(every, key=lambda head: (len(every[head]), sum(every[head])), default=None)
    return [most if most in heads else next(iter(heads), None) for heads in claims]
