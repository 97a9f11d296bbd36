"""Longer texts for a language model: sentences that share a rare word, one after the other.

Sentence pairs come in no meaningful order, so a text of one sentence rarely says a word twice. A model that
only ever reads such texts has little reason to look back at what followed a word before (Olsson et al. 2022).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from lab.texts.plain_text import shuffled

MOST_SENTENCES = 5
MOST_WORDS = 45
_WORD = re.compile(r"[^\W\d_]{3,}")


def joined(
    sentences: Sequence[str],  # in an order that means nothing
    every: int = 2,  # 2 lets every second sentence be joined, 1 all
) -> list[str]:
    """Texts of the same sentences: one of ``every`` is joined to others with which it shares a rare word.

    The rare word of a sentence is the least frequent of its words that another sentence has too. A text has
    at most ``MOST_SENTENCES`` sentences and about ``MOST_WORDS`` words.
    """
    pool = sentences[::every]
    alone = [text for place, text in enumerate(sentences) if place % every]
    counts = Counter(word for text in pool for word in _words(text))
    rare = sorted((_rarest(text, counts), place) for place, text in enumerate(pool))
    for word, group in groupby(rare, key=lambda each: each[0]):
        same = [pool[place] for _, place in group]
        alone += _texts(same) if word else same
    return shuffled(alone)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _rarest(text: str, counts: Counter[str]) -> str:
    shared = [(counts[word], word) for word in _words(text) if counts[word] > 1]
    return min(shared, default=(0, ""))[1]


def _texts(sentences: Sequence[str]) -> Iterator[str]:
    """Groups of consecutive sentences, each as one text."""
    held: list[str] = []
    for sentence in sentences:
        full = len(held) == MOST_SENTENCES or sum(len(text.split()) for text in held) >= MOST_WORDS
        if full:
            yield " ".join(held)
            held = []
        held.append(sentence)
    yield " ".join(held)
