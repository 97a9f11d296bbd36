"""Makes extra training pairs from given ones: longer texts, lower case, hasty typing, other
names."""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from transformer.text import kinds
from transformer.text.pairs import SentencePair

_PUNCTUATION = re.compile(r"([^\w\s])")
_LAST_MARKS = re.compile(r"\s*[.!?…]+$")
_WORD = re.compile(r"\w+")
Maker = Callable[[Sequence[SentencePair], int, random.Random], list[SentencePair]]
"""Makes so many pairs from given ones, or as many as it can."""


def _joined(pairs: Sequence[SentencePair], count: int, draw: random.Random) -> list[SentencePair]:
    """Joins two to four pairs into one, so that short sentences also give long texts."""
    groups = [draw.choices(pairs, k=draw.randint(2, 4)) for _ in range(count)]
    return [
        SentencePair(
            " ".join(pair.source for pair in group), " ".join(pair.target for pair in group)
        )
        for group in groups
    ]


def _rewritten(
    source: Callable[[str], str],
    target: Callable[[str], str],
    pairs: Sequence[SentencePair],
    count: int,
    draw: random.Random,
) -> list[SentencePair]:
    """Draws pairs, and writes their sides in another way."""
    drawn = draw.sample(pairs, min(len(pairs), count))
    return [SentencePair(source(pair.source), target(pair.target)) for pair in drawn]


def _plain(text: str) -> str:
    """Lower case with spaces around punctuation, as in many corpora."""
    return " ".join(_PUNCTUATION.sub(r" \1 ", text.lower()).split())


def _hasty(text: str) -> str:
    """As if typed hastily: lower case, no final punctuation."""
    return _LAST_MARKS.sub("", text.lower()) or text


def _swapped(pairs: Sequence[SentencePair], count: int, draw: random.Random) -> list[SentencePair]:
    """Replaces names and numbers that occur on both sides, so that the model learns to copy unknown
    ones.

    A name is a capitalised word that occurs equally often on both sides of a pair, and nowhere in
    lower case. Another name of these pairs replaces it; rare names are as likely as frequent ones.
    A number of two or more digits becomes another number of the same length.
    """
    lower = {word for pair in pairs for word in _WORD.findall(pair.source) if word[0].islower()}
    shared = [(pair, words) for pair in pairs if (words := _shared(pair, lower))]
    names = sorted({word for _, words in shared for word in words if not word.isdigit()})
    drawn = draw.sample(shared, min(len(shared), count))
    return [_swap(pair, words, names, draw) for pair, words in drawn]


def _swap(
    pair: SentencePair, words: list[str], names: list[str], draw: random.Random
) -> SentencePair:
    drawn = {word: draw.choice(names) for word in words if not word.isdigit()}
    for number in (word for word in words if word.isdigit()):
        drawn[number] = str(draw.randint(10 ** (len(number) - 1), 10 ** len(number) - 1))
    source, target = (
        _WORD.sub(lambda word: drawn.get(word[0], word[0]), side)
        for side in (pair.source, pair.target)
    )
    return SentencePair(source, target)


def _shared(pair: SentencePair, lower: set[str]) -> list[str]:
    """The names and numbers of a pair, in the order of its source."""
    source, target = (Counter(_WORD.findall(side)) for side in (pair.source, pair.target))
    alike = (word for word, count in source.items() if target[word] == count and len(word) > 1)
    return [
        word
        for word in alike
        if word.isdigit() or (word[0].isupper() and word.lower() not in lower)
    ]


MAKERS: dict[str, tuple[Maker, str]] = {
    "join": (_joined, "texts of two to four pairs"),
    "plain": (partial(_rewritten, _plain, _plain), "pairs in lower case with spaced punctuation"),
    "typed": (
        partial(_rewritten, _hasty, str),
        "pairs whose source is in lower case without its last mark",
    ),
    "swap": (_swapped, "pairs with other names and numbers"),
}
"""Maps each name to the function that makes extra pairs, and a description of those pairs."""


def augmented(
    pairs: list[SentencePair],  # the given pairs
    # extra pairs per given pair, by the names of `MAKERS`; a missing name makes none
    shares: Mapping[str, float],
    seed: int,  # seed of the random draws
) -> list[SentencePair]:
    """The given pairs and the extra ones, of which other makers draw from the joined texts too.

    ValueError if a share is below 0 or above 1.
    """
    for name, share in shares.items():
        kinds.number(0, 1).check(f"--{name}-share", share)

    def extra(name: str, pairs: list[SentencePair]) -> list[SentencePair]:
        count = round(shares.get(name, 0.0) * len(pairs))
        return MAKERS[name][0](pairs, count, random.Random(f"{name}/{seed}"))

    pairs = pairs + extra("join", pairs)
    return pairs + [pair for name in MAKERS if name != "join" for pair in extra(name, pairs)]
