"""Pieces as words for reading, whatever the script; a word among pieces; function words. No
PyTorch."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from transformer.text.words import (
    SPACE,
    Group,
    character_groups,
    groups_at,
    is_punctuation,
    spelled,
    unknown_text,
    word_groups,
)

_UNSPACED = re.compile(
    "CJK|HIRAGANA|KATAKANA|HALFWIDTH KATAKANA|IDEOGRAPHIC|BOPOMOFO|THAI|LAO |KHMER|MYANMAR|TIBETAN"
)
"""How names of characters begin in scripts without spaces between words."""
FEWEST_LETTERS = 3
"""Letters of such a script from which on a text without spaces is taken for several words."""
_JOINER = "\u200d"


def reading_groups(pieces: Sequence[str]) -> tuple[Group, ...]:
    """``word_groups`` for reading: punctuation is apart, and scripts without spaces keep their
    pieces."""
    return _reading_groups(tuple(pieces), tuple(map(type, pieces)))


@lru_cache(64)
def _reading_groups(pieces: tuple[str, ...], _sorts: tuple[type[str], ...]) -> tuple[Group, ...]:
    """Of pieces and their classes: a special piece equals one that is spelled like it."""
    starts = list[int]()
    for word in word_groups(pieces):
        units = _drawn_characters(pieces[word.start : word.stop])
        inner = [i for i, unit in enumerate(units) if not is_punctuation(unit.text)] or [len(units)]
        starts += [
            word.start + unit.start
            for i, unit in enumerate(units)
            if i <= inner[0]
            or i > inner[-1]
            or _unspaced(unit.text[0])
            or _unspaced(units[i - 1].text[-1])
        ]
    return groups_at(pieces, starts)


def _drawn_characters(word: Sequence[str]) -> list[Group]:
    """The characters of a word; marks, joined emoji, their tones and a lone `▁` join what they
    belong to."""
    units: list[Group] = []
    for unit in character_groups(word):
        first = unit.text[0]
        tone = "\U0001f3fb" <= first <= "\U0001f3ff"
        mark = unicodedata.category(first).startswith("M")
        waits = units and (units[-1].text.endswith(_JOINER) or "".join(word[: unit.start]) == SPACE)
        if waits or (units and (mark or tone or first == _JOINER)):
            start = units.pop().start
            units.append(Group(start, unit.stop, spelled(word[start : unit.stop])))
        else:
            units.append(unit)
    return units


def _unspaced(character: str) -> bool:
    return _UNSPACED.match(unicodedata.name(character, "")) is not None


def is_run_together(text: str) -> bool:
    """True if a text in a script without spaces has none between its words, so that they count as
    one."""
    letters = [sum(map(_unspaced, filter(str.isalnum, word))) for word in text.split()]
    counts = [count for count in letters if count]
    return len(counts) == 1 and counts[0] >= FEWEST_LETTERS


def find_word(pieces: Sequence[str], word: str) -> tuple[int, int] | None:
    """First and last position of a whole word in a sequence of pieces; None if the word does not
    occur."""
    for first in range(len(pieces)):
        text = ""
        for last, piece in enumerate(pieces[first:], first):
            if last > first and piece.startswith(SPACE):
                break
            text += unknown_text(piece) or piece.removeprefix(SPACE)
            follows = "".join(pieces[last + 1 : last + 2])
            if text == word and not follows[:1].isalnum():
                return first, last
    return None


def _words(language: str) -> frozenset[str]:
    return frozenset(
        Path(__file__).with_name(f"{language}.txt").read_text(encoding="utf-8").split()
    )


SOURCE_LANGUAGES = _words("english")
TARGET_LANGUAGES = _words("german") | _words("french")
"""Function words. The project's models translate from English; few German and French words
collide."""
SPECIAL, MARK, FUNCTION, CONTENT = range(4)
"""The sorts of a word: special token, punctuation or symbol, function word, content word."""


def sorts_of(groups: Iterable[Group], function_words: frozenset[str]) -> list[int]:
    """The sort of each word: one of ``SPECIAL``, ``MARK``, ``FUNCTION``, ``CONTENT``."""
    return [_sort_of(group, function_words) for group in groups]


def _sort_of(word: Group, function_words: frozenset[str]) -> int:
    if word.special:
        return SPECIAL
    if not any(map(str.isalnum, word.text)):
        return MARK
    return FUNCTION if word.text.replace("’", "'").lower() in function_words else CONTENT
