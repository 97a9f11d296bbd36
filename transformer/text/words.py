"""Pieces as people read them: without `▁`, bytes joined into characters, pieces joined into words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

PAD, BOS, EOS, UNK = "<pad>", "<s>", "</s>", "<unk>"
NO_PIECE = "◌"
"""Stands for an id past the last piece: what a decoder reads first if its vocabulary has no start piece."""
SPACE = "▁"
SPECIAL_PIECES = frozenset({PAD, BOS, EOS, UNK})
VISIBLE_SPACE = "◦"
_UNSPACED = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "HALFWIDTH KATAKANA",
    "IDEOGRAPHIC",
    "BOPOMOFO",
    "THAI",
    "LAO ",
    "KHMER",
    "MYANMAR",
    "TIBETAN",
)
_JOINER = "\u200d"
_SKIN_TONES = "".join(map(chr, range(0x1F3FB, 0x1F400)))
_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
_UNKNOWN_PIECE = re.compile(r"▁?<unk:(.+)>", re.DOTALL)
LANGUAGE = re.compile(
    r">>[^\s<>]+<<|__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}|[a-z]{2}_[A-Z]{2}|<2[a-z]{2,3}(_[A-Za-z]+)?>"
)
"""A piece that names a language."""
_LONGEST_UNKNOWN = 100


@dataclass(frozen=True)
class Group:
    """Neighbouring pieces that are read as one unit."""

    start: int  # index of the first piece, from 0
    stop: int  # index after the last piece
    text: str  # the text that the pieces spell, without `▁`

    @property
    def indices(self) -> range:
        """The indices of the pieces."""
        return range(self.start, self.stop)


def is_language(piece: str) -> bool:
    """True if a piece names a language: `>>fra<<`, `__fr__`, `fra_Latn`, `fr_XX`, `<2fr>`."""
    return LANGUAGE.fullmatch(piece) is not None


@lru_cache(4096)
def is_special(piece: str) -> bool:
    """True if a piece stands for no text: `<pad>`, `<s>`, `</s>`, `<unk>`, or a language."""
    return piece in SPECIAL_PIECES or is_language(piece)


def _stands_alone(piece: str) -> bool:
    """True for a special piece that is no part of a word; `<unk>` may stand inside one."""
    return is_special(piece) and piece != UNK


def starts_word(piece: str) -> bool:
    """True if a space stands before the piece."""
    return piece.startswith(SPACE)


def in_bytes(piece: str) -> bool:
    """True if a piece spells bytes of a character, as `<0xE2>` or `▁<0xE2><0x80>`."""
    return unknown_text(piece) is None and _BYTE_PIECE.search(piece) is not None


def unknown_piece(text: str) -> str:
    """The name of a piece that the model reads as `<unk>`: with the text for which it has no piece."""
    return f"<unk:{text if len(text) <= _LONGEST_UNKNOWN else text[:_LONGEST_UNKNOWN] + '…'}>"


@lru_cache(4096)
def unknown_text(piece: str) -> str | None:
    """The text for which a model has no piece, by the name of what stands for it; None for other pieces."""
    match = _UNKNOWN_PIECE.fullmatch(piece)
    return match[1] if match else None


@lru_cache(4096)
def readable(piece: str) -> str:
    """One piece without its `▁`; a lone space is `◦`, a byte its character or its code, as `0xE2`."""
    if (unknown := unknown_text(piece)) is not None:
        return unknown
    if is_special(piece):
        return piece
    text = _BYTE_PIECE.sub(_code, piece).replace(SPACE, " ").strip()
    return text.replace("  ", " ") or VISIBLE_SPACE


def _code(byte: re.Match[str]) -> str:
    value = int(byte[1], 16)
    return chr(value) if 0x20 < value < 0x7F else f" 0x{value:02X} "


def character_groups(pieces: Sequence[str]) -> tuple[Group, ...]:
    """One group per piece; the byte pieces of one character share a group."""
    groups: list[Group] = []
    start = 0
    while start < len(pieces):
        stop = _character_end(pieces, start)
        groups.append(Group(start, stop, _spelled(pieces[start:stop])))
        start = stop
    return tuple(groups)


def word_groups(pieces: Sequence[str]) -> tuple[Group, ...]:
    """One group per space-separated word; a special piece is a group of its own, unless it is `<unk>`."""
    starts = [
        index
        for index, piece in enumerate(pieces)
        if index == 0 or starts_word(piece) or _stands_alone(piece) or _stands_alone(pieces[index - 1])
    ]
    bounds = pairwise([*starts, len(pieces)])
    return tuple(Group(start, stop, _spelled(pieces[start:stop])) for start, stop in bounds)


def reading_groups(pieces: Sequence[str]) -> tuple[Group, ...]:
    """Groups the pieces into words for reading: like ``word_groups``, with two differences.

    Punctuation before and after a word is separate: one group per piece. Scripts without spaces between words
    (Chinese, Japanese, Thai, …) keep their pieces, because no rule here can find their words. The bytes of
    one character are always joined, and so are combining marks and the character before them.
    """
    found: list[Group] = []
    for word in word_groups(pieces):
        units = _joined_marks(pieces, character_groups(pieces[word.start : word.stop]), word.start)
        found += _words_of(pieces, units)
    return tuple(found)


def find_word(pieces: Sequence[str], word: str) -> tuple[int, int] | None:
    """First and last position of a whole word in a sequence of pieces; None if the word does not occur."""
    for first in range(len(pieces)):
        text = ""
        for last in range(first, len(pieces)):
            text += unknown_text(pieces[last]) or pieces[last].removeprefix(SPACE)
            if text == word and not _goes_on(pieces, last):
                return first, last
            if not word.startswith(text) or _ends(pieces, last):
                break
    return None


def is_punctuation(text: str) -> bool:
    """True if a text holds nothing but punctuation (Unicode categories P…); symbols and emoji are not."""
    return bool(text) and all(unicodedata.category(character).startswith("P") for character in text)


def _goes_on(pieces: Sequence[str], last: int) -> bool:
    """True if the next piece belongs to the same word."""
    return not _ends(pieces, last) and pieces[last + 1][:1].isalnum()


def _ends(pieces: Sequence[str], last: int) -> bool:
    return last + 1 == len(pieces) or starts_word(pieces[last + 1])


def _joined_marks(pieces: Sequence[str], characters: Sequence[Group], offset: int) -> list[Group]:
    """The characters of a word; marks, joined emoji and a lone `▁` join the character they belong to."""
    units: list[Group] = []
    for each in characters:
        start, stop = offset + each.start, offset + each.stop
        if units and (_combines(each.text[0]) or _waits(pieces, units[-1])):
            start = units.pop().start
        units.append(Group(start, stop, _spelled(pieces[start:stop])))
    return units


def _words_of(pieces: Sequence[str], units: Sequence[Group]) -> list[Group]:
    """Splits a space-separated word at its outer punctuation and into the pieces of unspaced scripts."""
    inner = [i for i, unit in enumerate(units) if not is_punctuation(unit.text)] or [len(units)]
    starts = [
        unit.start
        for i, unit in enumerate(units)
        if i <= inner[0] or i > inner[-1] or unspaced(unit.text[0]) or unspaced(units[i - 1].text[-1])
    ]
    bounds = pairwise([*starts, units[-1].stop])
    return [Group(start, stop, _spelled(pieces[start:stop])) for start, stop in bounds]


def _combines(character: str) -> bool:
    return unicodedata.category(character).startswith("M") or character == _JOINER or character in _SKIN_TONES


def _waits(pieces: Sequence[str], unit: Group) -> bool:
    """True if a unit needs the next one: a lone `▁`, or an emoji that a joiner continues."""
    return tuple(pieces[unit.start : unit.stop]) == (SPACE,) or unit.text.endswith(_JOINER)


def unspaced(character: str) -> bool:
    return unicodedata.name(character, "").startswith(_UNSPACED)


def _character_end(pieces: Sequence[str], start: int) -> int:
    """Index after the pieces of the character at `start`; the lead byte of UTF-8 gives their number."""
    stop = start + 1
    if in_bytes(pieces[start]):
        found = raw(pieces[start])
        while stop < len(pieces) and _missing(found) and 0x80 <= raw(pieces[stop])[0] < 0xC0:
            found, stop = found + raw(pieces[stop]), stop + 1
    return stop


def _missing(text: bytes) -> int:
    """Number of bytes that the last character of a text lacks; its lead byte says how many it has."""
    for back, byte in enumerate(reversed(text[-3:]), 1):
        if byte >= 0xC0:
            return max(0, 2 + (byte >= 0xE0) + (byte >= 0xF0) - back)
        if byte < 0x80:
            break
    return 0


def _spelled(pieces: Sequence[str]) -> str:
    if len(pieces) == 1:
        return readable(pieces[0])
    text = b"".join(map(raw, pieces)).decode("utf-8", "replace").replace(SPACE, " ").strip()
    return text or VISIBLE_SPACE


def raw(piece: str) -> bytes:
    """What a piece spells, with its `▁`."""
    if (unknown := unknown_text(piece)) is not None:
        return (SPACE * starts_word(piece) + unknown).encode()
    texts = _BYTE_PIECE.split(piece)  # texts, with the numbers of bytes between them
    return b"".join(bytes.fromhex(each) if at % 2 else each.encode() for at, each in enumerate(texts))
