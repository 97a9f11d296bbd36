"""What a head tells of a sentence: links of words, the most telling step, glosses, claims of examples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.lenses.words.alignment import merge_words
from explorer.lenses.words.groups import (
    CONTENT,
    FUNCTION,
    SOURCE_LANGUAGES,
    TARGET_LANGUAGES,
    find_word,
    reading_groups,
    sort_of,
)
from transformer.config import AttentionKind
from transformer.run import Translation
from transformer.text.words import Group

CLEAR = 0.5
"""From this weight on, one source word holds most of a row."""
_NEAR = 0.2
"""Added to the distance of a link, so that a link on the diagonal counts, too."""


@dataclass(frozen=True)
class WordLink:
    """A target word and a source word, each the strongest for the other."""

    target: Group  # the pieces of the target word
    source: Group  # the pieces of the source word
    weight: float  # the attention of the target word on the source word, from 0 to 1
    distance: float  # of the source word from the diagonal, as a share of the source, from 0 to 1


def links(
    weights: NDArray[np.float32], source_tokens: Sequence[str], targets: Sequence[Group]
) -> tuple[WordLink, ...]:
    """Target and source words strongest for each other; content words compete among themselves."""
    sources = reading_groups(source_tokens)
    if not targets or not sources:
        return ()
    merged = merge_words(weights, targets, sources)
    content = np.array([sort_of(each.text, TARGET_LANGUAGES) == CONTENT for each in targets])
    found = []
    for row, target in enumerate(targets):
        best = int(merged[row].argmax())
        source = sources[best]
        rivals = merged[content if content[row] else slice(None), best]
        if sort_of(source.text, SOURCE_LANGUAGES) >= FUNCTION and merged[row, best] >= rivals.max():
            distance = abs(source.start / len(source_tokens) - target.start / len(weights))
            found.append(WordLink(target, source, float(merged[row, best]), distance))
    return tuple(found)


def text_words(tokens: Sequence[str]) -> list[Group]:
    """The words of a target, without marks and special tokens."""
    return [each for each in reading_groups(tokens) if sort_of(each.text, TARGET_LANGUAGES) >= FUNCTION]


def telling_step(
    weights: NDArray[np.float32],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    aligned: NDArray[np.float32] | None = None,
) -> int:
    """The step (from 0) with the most telling link: of content words, away from the diagonal, if any."""
    words = [Group(each.start, each.start + 1, each.text) for each in text_words(target_tokens)]
    linked = {link.target.start: link for link in links(weights, source_tokens, words)}
    if aligned is not None:
        known = {(link.target.start, link.source) for link in links(aligned, source_tokens, words)}
        linked = {start: link for start, link in linked.items() if (start, link.source) in known}
    every = reading_groups(target_tokens)
    return max(every, key=lambda word: _merit(word, linked.get(word.start))).start if every else 0


def _merit(word: Group, link: WordLink | None) -> tuple[int, float]:
    """Rank of a word by what it tells: first its sort and that of its partner, then its link."""
    sort = sort_of(word.text, TARGET_LANGUAGES)
    if link is None:
        return sort, 0.0
    if sort < CONTENT or sort_of(link.source.text, SOURCE_LANGUAGES) < CONTENT:
        return sort, link.weight * _NEAR
    return sort + 1 + (link.weight >= CLEAR), link.weight * (_NEAR + link.distance)


def glosses(
    weights: NDArray[np.float32], source_tokens: Sequence[str], target_tokens: Sequence[str]
) -> dict[int, str]:
    """The source word behind each linked target word, by the position (from 0) of the word's first piece."""
    found = links(weights, source_tokens, text_words(target_tokens))
    return {link.target.start: link.source.text for link in found}


@dataclass(frozen=True)
class ClaimHead:
    """A head that shows a claim."""

    layer: int  # layer of the cross-attention head, from 0
    head: int  # the head, from 0
    weight: float  # its weight on the source word, all pieces together


def heads_that_show(run: Translation, target: str, source: str, least: float) -> list[ClaimHead]:
    """Heads, strongest first, whose row predicting a word looks most, and so much, at a source word."""
    row, keys = find_word(run.target_tokens, target), find_word(run.source_tokens, source)
    if row is None or keys is None or run.attention is None:
        return []
    found = []
    for layer in range(run.config.sites[AttentionKind.CROSS].n_layers):
        rows = run.attention.weights(AttentionKind.CROSS, layer)[:, row[0]]
        for head, weights in enumerate(rows):
            weight = float(weights[keys[0] : keys[1] + 1].sum())
            if keys[0] <= int(np.argmax(weights)) <= keys[1] and weight >= least:
                found.append(ClaimHead(layer, head, weight))
    return sorted(found, key=lambda shown: -shown.weight)


def shared_heads(claim_heads: Sequence[Sequence[ClaimHead]]) -> list[ClaimHead | None]:
    """One head for each claim, so that one head shows as many as possible; None if no head shows it."""
    merits: dict[tuple[int, int], tuple[int, float]] = {}
    for shown in (each for heads in claim_heads for each in heads):
        count, total = merits.get((shown.layer, shown.head), (0, 0.0))
        merits[shown.layer, shown.head] = count + 1, total + shown.weight
    most = max(merits, key=lambda place: merits[place], default=None)
    return [
        next((each for each in heads if (each.layer, each.head) == most), heads[0] if heads else None)
        for heads in claim_heads
    ]
