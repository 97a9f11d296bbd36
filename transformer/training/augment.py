"""Extra training pairs made from the given ones: longer texts, lower case, hasty typing, other names."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from transformer.text.pairs import SentencePair

_PUNCTUATION = re.compile(r"([^\w\s])")
_LAST_MARKS = re.compile(r"\s*[.!?…]+$")
_WORD = re.compile(r"\w+")


def join_pairs(pairs: Sequence[SentencePair], share: float, seed: int) -> list[SentencePair]:
    """Two to four pairs written one after the other: short sentences also make long texts.

    Args:
        pairs: Drawn from at random.
        share: How many pairs to make, as a share of the number of pairs; so in the other functions too.
        seed: Decides the draws.
    """
    draw = random.Random(f"join/{seed}")
    groups = [draw.choices(pairs, k=draw.randint(2, 4)) for _ in range(round(share * len(pairs)))]
    return [
        SentencePair(" ".join(pair.source for pair in group), " ".join(pair.target for pair in group))
        for group in groups
    ]


def plain_pairs(pairs: Sequence[SentencePair], share: float, seed: int) -> list[SentencePair]:
    """Both sides in lower case with spaces around punctuation, as in many corpora."""
    drawn = _sample(pairs, share, f"plain/{seed}")
    return [SentencePair(plain(pair.source), plain(pair.target)) for pair in drawn]


def typed_pairs(pairs: Sequence[SentencePair], share: float, seed: int) -> list[SentencePair]:
    """The source as hastily typed, in lower case and without its last mark; the target as it was."""
    drawn = _sample(pairs, share, f"typed/{seed}")
    return [
        SentencePair(_LAST_MARKS.sub("", pair.source.lower()) or pair.source, pair.target) for pair in drawn
    ]


def swapped_pairs(pairs: Sequence[SentencePair], share: float, seed: int) -> list[SentencePair]:
    """Names and numbers that stand on both sides, replaced on both by others: what cannot be known is copied.

    A name is a capitalised word that stands on both sides of a pair, as often on each, and nowhere in lower
    case; its place is taken by any other name of these pairs, rare ones as likely as frequent ones. Numbers
    of two digits and more become others of the same length.
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
    """Lower case, punctuation marks parted by spaces."""
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
"""By name: what makes extra pairs, and what they are."""


def augmented(pairs: list[SentencePair], shares: Mapping[str, float], seed: int) -> list[SentencePair]:
    """The pairs and the extra ones; all but the joined texts are also drawn from the joined texts.

    Args:
        pairs: The given ones.
        shares: Extra pairs per pair, by the names of `MAKERS`; a missing name makes none.
        seed: Decides the draws.

    Raises:
        ValueError: A share is below 0 or above 1.
    """
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"--{name}-share is {share}; it must be from 0 to 1.")
    pairs = pairs + join_pairs(pairs, shares.get("join", 0.0), seed)
    extra = [MAKERS[name][0](pairs, shares.get(name, 0.0), seed) for name in MAKERS if name != "join"]
    return [pair for part in (pairs, *extra) for pair in part]
