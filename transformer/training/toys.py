"""Copying, reversing, sorting, and rewriting dates: pairs of any number, made from a seed."""

import calendar
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from transformer.text.pairs import SentencePair

LETTERS = "abcdefghijkl"
MONTHS = tuple(calendar.month_name)[1:]
SHORTEST = 2
LENGTH = 5
LENGTHS = (3, 12)
"""Fewest letters of a sequence, the usual most letters, and the smallest and largest choice for
these."""
DRAWN, HELD_OUT = 10_000, 200
"""Pairs that are drawn, and how many of the different ones are kept for validation."""


@dataclass(frozen=True)
class Toy:
    """A task."""

    about: str  # what the model should learn, in a few words
    # makes a pair; gets the source of chance and the most letters of a sequence
    draw: Callable[[random.Random, int], SentencePair]
    words: tuple[str, ...] = ()  # words that should become pieces of the vocabulary, whole
    spelled: bool = True  # whether a sequence has a length to choose


def _letters(
    order: Callable[[list[str]], Sequence[str]], chance: random.Random, longest: int
) -> SentencePair:
    """Letters, and the same in another order."""
    letters = chance.choices(LETTERS, k=chance.randint(SHORTEST, longest))
    return SentencePair(" ".join(letters), " ".join(order(letters)))


def _date(chance: random.Random, _longest: int) -> SentencePair:
    """A date as people write it, and the same as ISO 8601 writes it."""
    year = chance.randint(1900, 2099)
    month = chance.randint(1, 12)
    day = chance.randint(1, calendar.monthrange(year, month)[1])
    name = MONTHS[month - 1]
    forms = (f"{day} {name} {year}", f"{name} {day}, {year}", f"{day:02}.{month:02}.{year}")
    return SentencePair(chance.choice(forms), f"{year}-{month:02}-{day:02}")


TOYS: dict[str, Toy] = {
    "copy": Toy("gives the letters back as they are", partial(_letters, list)),
    "reverse": Toy(
        "gives the letters back from last to first",
        partial(_letters, lambda letters: letters[::-1]),
    ),
    "sort": Toy("gives the letters back in the order of the alphabet", partial(_letters, sorted)),
    "dates": Toy("rewrites a date as year-month-day", _date, MONTHS, spelled=False),
}
"""The tasks by name."""


@dataclass(frozen=True)
class ToyData:
    """The data of a task."""

    train: tuple[SentencePair, ...]  # pairs to train on
    valid: tuple[SentencePair, ...]  # other pairs, to measure with
    words: tuple[str, ...]  # texts that only the vocabulary reads


def toy_data(name: str, length: int = LENGTH, seed: int = 1) -> ToyData:
    """The data of a task; the same for the same seed, and no source occurs twice.

    ValueError if there is no such task, or the length is out of bounds.
    """
    if name not in TOYS:
        raise ValueError(f"{name!r:.40} is not a toy task; choose {', '.join(TOYS)}.")
    if not LENGTHS[0] <= length <= LENGTHS[1]:
        raise ValueError(
            f"The length of a toy task is {length}; choose {LENGTHS[0]} to {LENGTHS[1]}."
        )
    toy = TOYS[name]
    chance = random.Random(f"{name}/{length}/{seed}")
    drawn = (toy.draw(chance, length) for _ in range(DRAWN))
    pairs = tuple({pair.source: pair for pair in drawn}.values())
    # sentencepiece takes as pieces only what several different words share
    words = tuple(f"{word}{end}" for word in toy.words for end in ("", ",", ".", "-"))
    return ToyData(pairs[HELD_OUT:], pairs[:HELD_OUT], words)
