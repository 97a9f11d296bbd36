"""Finds sentences that are nearly those of a held-out part, so that training does not see what is tested.

Words are compared in lower case, without punctuation. Two sentences are near duplicates if

- they have the same words in the same order, or
- one becomes the other when one word is replaced, dropped or added, and at least three words are shared, or
- they share more than 70 % of the different 4-grams of the one that has fewer, which has three or more.

The last rule also finds a held-out sentence of six words or more that stands inside a longer one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

Words = tuple[str, ...]
SHARED_WORDS = 3
"""Fewest words that two sentences share if one edit turns one into the other."""
ORDER, SHARE, FEWEST = 4, 0.7, 3
"""Length of the word n-grams, the share above which sentences are near, and the fewest n-grams to compare."""
_WORD = re.compile(r"\w+(?:'\w+)*")


def words(text: str) -> Words:
    """The words of a sentence in lower case, without punctuation; `’` is read as `'`."""
    return tuple(_WORD.findall(text.lower().replace("’", "'")))


def grams(sentence: Words) -> set[Words]:
    """The different 4-grams of a sentence."""
    return set(zip(*(sentence[start:] for start in range(ORDER)), strict=False))


class NearDuplicates:
    """The sentences of a held-out part, to ask whether another sentence is near one of them."""

    def __init__(self, held: Iterable[str]) -> None:
        """Indexes the held-out sentences."""
        self._held = {words(text) for text in held}
        self._gaps = {gap for sentence in self._held for gap in _gaps(sentence)}
        self._shorter = {rest for _, rest in self._gaps}
        self._sizes: list[int] = []
        self._holders: dict[Words, list[int]] = defaultdict(list)
        for number, found in enumerate(map(grams, sorted(self._held))):
            self._sizes.append(len(found))
            for gram in found:
                self._holders[gram].append(number)

    def __contains__(self, text: str) -> bool:
        """True if a sentence is a near duplicate of a held-out one."""
        sentence = words(text)
        return sentence in self._held or self._one_edit(sentence) or self._shares_grams(grams(sentence))

    def _one_edit(self, sentence: Words) -> bool:
        if sentence in self._shorter:
            return True
        return any(gap in self._gaps or gap[1] in self._held for gap in _gaps(sentence))

    def _shares_grams(self, found: set[Words]) -> bool:
        shared = Counter(number for gram in found & self._holders.keys() for number in self._holders[gram])
        return any(self._near(count, len(found), self._sizes[number]) for number, count in shared.items())

    @staticmethod
    def _near(shared: int, *sizes: int) -> bool:
        return min(sizes) >= FEWEST and shared > SHARE * min(sizes)


def _gaps(sentence: Words) -> Iterator[tuple[int, Words]]:
    """The sentence without one word, each with the place of that word; none if too few words are left."""
    if len(sentence) > SHARED_WORDS:
        yield from ((place, sentence[:place] + sentence[place + 1 :]) for place in range(len(sentence)))
