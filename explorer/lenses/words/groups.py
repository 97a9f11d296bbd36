"""Pieces as words for reading, whatever the script; and a word among pieces. No PyTorch."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from transformer.text.words import (
    SPACE,
    Group,
    character_groups,
    groups_at,
    is_punctuation,
    spelled,
    starts_word,
    unknown_text,
    word_groups,
)

_UNSPACED = re.compile(
    "CJK|HIRAGANA|KATAKANA|HALFWIDTH KATAKANA|IDEOGRAPHIC|BOPOMOFO|THAI|LAO |KHMER|MYANMAR|TIBETAN"
)
"""How names of characters begin in scripts without spaces between words."""
_JOINER = "\u200d"


def reading_groups(pieces: Sequence[str]) -> tuple[Group, ...]:
    """``word_groups`` for reading: punctuation is apart, and scripts without spaces keep their pieces."""
    starts = list[int]()
    for word in word_groups(pieces):
        units = _drawn_characters(pieces[word.start : word.stop])
        inner = [i for i, unit in enumerate(units) if not is_punctuation(unit.text)] or [len(units)]
        starts += [
            word.start + unit.start
            for i, unit in enumerate(units)
            if i <= inner[0] or i > inner[-1] or _unspaced(unit.text[0]) or _unspaced(units[i - 1].text[-1])
        ]
    return groups_at(pieces, starts)


def _drawn_characters(word: Sequence[str]) -> list[Group]:
    """The characters of a word; marks, joined emoji and a lone `▁` join the character they belong to."""
    units: list[Group] = []
    for unit in character_groups(word):
        waits = units and (units[-1].text.endswith(_JOINER) or "".join(word[: unit.start]) == SPACE)
        if waits or (units and _combines(unit.text[0])):
            start = units.pop().start
            units.append(Group(start, unit.stop, spelled(word[start : unit.stop])))
        else:
            units.append(unit)
    return units


def _combines(character: str) -> bool:
    """True for marks, joiners and the tones of skin of emoji."""
    mark = unicodedata.category(character).startswith("M")
    return mark or character == _JOINER or "\U0001f3fb" <= character <= "\U0001f3ff"


def _unspaced(character: str) -> bool:
    return _UNSPACED.match(unicodedata.name(character, "")) is not None


def find_word(pieces: Sequence[str], word: str) -> tuple[int, int] | None:
    """First and last position of a whole word in a sequence of pieces; None if the word does not occur."""
    for first in range(len(pieces)):
        text = ""
        for last, piece in enumerate(pieces[first:], first):
            if last > first and starts_word(piece):
                break
            text += unknown_text(piece) or piece.removeprefix(SPACE)
            follows = "".join(pieces[last + 1 : last + 2])
            if text == word and not follows[:1].isalnum():
                return first, last
    return None
