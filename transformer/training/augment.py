"""Makes extra training pairs from given ones: longer texts, lower case, hasty typing, other names."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from transformer.text import kinds
from transformer.text.pairs import SentencePair

_PUNCTUATION = re.compile(r"([^\w\s])")
_LAST_MARKS = re.compile(r"\s*[.!?…]+$")
_WORD = re.compile(r"\w+")


def join_pairs(
    pairs: Sequence[SentencePair],  # the pairs to draw from at random
    share: float,  # number of pairs to make, as a share of ``len(pairs)``; the other functions use it alike
    seed: int,  # seed of the random draws
) -> list[SentencePair]:
    """Joins two to four pairs into one, so that short sentences also give long texts."""
    draw = random.Random(f"join/{seed}")
    groups = [draw.choices(pairs, k=draw.randint(2, 4)) for _ in range(round(share * len(pairs)))]
    return [
        SentencePair(" ".join(pair.source for pair in group), " ".join(pair.target for pair in group))
        for group in groups
    ]


def plain_pairs(pairs: Sequence[SentencePair], share: float, seed: int) -> list[SentencePair]:
    """Writes both sides in lower case with spaces around punctuation, as in many corpora."""
    drawn = _sample(pairs, share, f"plain/{seed}")
    return [SentencePair(plain(pair.source), plain(pair.target)) for pair in drawn]


def typed_pairs(pairs: Sequence[SentencePair], share: float, seed: int) -> list[SentencePair]:
    """Writes the source as if typed hastily: lower case, no final punctuation; the target is unchanged."""
    drawn = _sample(pairs, share, f"typed/{seed}")
    return [
        SentencePair(_LAST_MARKS.sub("", pair.source.lower()) or pair.source, pair.target) for pair in drawn
    ]


def swapped_pairs(pairs: Sequence[SentencePair], share: float, seed: int) -> list[SentencePair]:
    """Replaces names and numbers that occur on both sides, so that the model learns to copy unknown ones.

    A name is a capitalised word that occurs equally often on both sides of a pair, and nowhere in lower case.
    Another name of these pairs replaces it; rare names are as likely as frequent ones. A number of two or
    more digits becomes another number of the same length.
    """
    lower = {word for pair in pairs for word in _WORD.findall(pair.source) if word[0].islower()}
    shared = [_shared(pair, lower) for pair in pairs]
    names = sorted({word for words in shared for word in words if not word.isdigit()})
    draw = random.Random(f"swap/{seed}")
    usable = [(pair, words) for pair, words in zip(pairs, shared, strict=True) if words]
    drawn = draw.sample(usable, min(len(usable), round(share * len(pairs))))
    return [_swap(pair, words, names, draw) for pair, words in drawn]


def _shared(pair: SentencePair, lower: set[str]) -> list[str]:
    """The names and numbers of a pair, in the order of its source."""
    source, target = Counter(_WORD.findall(pair.source)), Counter(_WORD.findall(pair.target))
    both = (word for word, count in source.items() if target[word] == count and len(word) > 1)
    return [word for word in both if word.isdigit() or (word[0].isupper() and word.lower() not in lower)]


def _swap(pair: SentencePair, words: list[str], names: list[str], draw: random.Random) -> SentencePair:
    other = {word: draw.choice(names) for word in words if not word.isdigit()}
    for number in (word for word in words if word.isdigit()):
        other[number] = str(draw.randint(10 ** (len(number) - 1), 10 ** len(number) - 1))
    source, target = (
        _WORD.sub(lambda word: other.get(word[0], word[0]), side) for side in (pair.source, pair.target)
    )
    return SentencePair(source, target)


def plain(text: str) -> str:
    """The text in lower case, with spaces around punctuation marks."""
    return " ".join(_PUNCTUATION.sub(r" \1 ", text.lower()).split())


def _sample(pairs: Sequence[SentencePair], share: float, seed: str) -> list[SentencePair]:
    return random.Random(seed).sample(list(pairs), min(len(pairs), round(share * len(pairs))))


Maker = Callable[[Sequence[SentencePair], float, int], list[SentencePair]]
MAKERS: dict[str, tuple[Maker, str]] = {
    "join": (join_pairs, "texts of two to four pairs"),
    "plain": (plain_pairs, "pairs in lower case with spaced punctuation"),
    "typed": (typed_pairs, "pairs whose source is in lower case without its last mark"),
    "swap": (swapped_pairs, "pairs with other names and numbers"),
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
    pairs = pairs + join_pairs(pairs, shares.get("join", 0.0), seed)
    extra = [MAKERS[name][0](pairs, shares.get(name, 0.0), seed) for name in MAKERS if name != "join"]
    return [pair for part in (pairs, *extra) for pair in part]
