"""Pieces as people read them: without `▁`, bytes joined into characters, pieces joined into
words."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise


class Special(str):
    """A piece that stands for no text, as its vocabulary says of its id: a typed `</s>` is none."""

    __slots__ = ()


class End(Special):
    """A special piece that ends a text, as the model says of its id: `</s>`, `<|im_end|>`, …"""

    __slots__ = ()


class Mask(Special):
    """A special piece that stands for a hidden word, as the model says of its id: `[MASK]`, …"""

    __slots__ = ()


PAD = Special("<pad>")
BOS = Special("<s>")
EOS = End("</s>")
UNK = Special("<unk>")
MASK = Mask("<mask>")
"""The mask of the vocabularies that this package trains."""
TYPED_MASK = "[MASK]"
"""How a hidden word may be typed, whatever a vocabulary calls its mask."""
NO_PIECE = Special("◌")
"""Stands for an id past the last piece: what a decoder reads first if its vocabulary has no start
piece."""
SPACE = "▁"
VISIBLE_SPACE = "◦"
BREAKS = {"\n": "¶", "\t": "→", "\r": "↙"}
"""What is drawn for characters that break a line or move along it."""
_SIGNS_OF_BREAKS = str.maketrans(BREAKS)
LANGUAGE = re.compile(
    r">>[^\s<>]+<<|__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}|[a-z]{2}_[A-Z]{2}|<2[a-z]{2,3}(_[A-Za-z]+)?>"
)
is_language = LANGUAGE.fullmatch
"""A match if a piece names a language: `>>fra<<`, `__fr__`, `fra_Latn`, `fr_XX`, `<2fr>`."""
BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
_UNKNOWN_PIECE = re.compile(r"▁?<unk:(.+)>", re.DOTALL)
_LONGEST_UNKNOWN = 100
_CUT_OFF = re.compile(rb"([\xc0-\xff]|[\xe0-\xff][\x80-\xbf]|[\xf0-\xff][\x80-\xbf]{2})\Z")
"""UTF-8 that ends inside a character: the lead byte says how many follow."""


@dataclass(frozen=True)
class Group:
    """Neighbouring pieces that are read as one unit."""

    start: int  # index of the first piece, from 0
    stop: int  # index after the last piece
    text: str  # the text that the pieces spell, without `▁`
    special: bool = False  # whether it is one special piece

    @property
    def indices(self) -> range:
        """The indices of the pieces."""
        return range(self.start, self.stop)


def is_special(piece: str) -> bool:
    """True if a piece stands for no text: `<pad>`, `<s>`, `</s>`, `<unk>`, ``NO_PIECE``, or a
    language.

    The spelling says nothing: whoever names an id, or knows a place, makes the piece ``Special``.
    """
    return isinstance(piece, Special)


def is_end(piece: str) -> bool:
    """True if a piece ends a text; the spelling says nothing."""
    return isinstance(piece, End)


def is_mask(piece: str) -> bool:
    """True if a piece stands for a hidden word; the spelling says nothing."""
    return isinstance(piece, Mask)


def in_bytes(piece: str) -> bool:
    """True if a piece spells bytes of a character, as `<0xE2>` or `▁<0xE2><0x80>`."""
    return unknown_text(piece) is None and BYTE_PIECE.search(piece) is not None


@lru_cache(4096)
def is_break(piece: str) -> bool:
    """True if a piece spells nothing but blanks, with a line break or a tab among them."""
    if not in_bytes(piece) or is_special(piece):
        return False
    text = raw(piece).decode("utf-8", "replace").replace(SPACE, " ")
    return text.isspace() and not BREAKS.keys().isdisjoint(text)


def is_punctuation(text: str) -> bool:
    """True if a text holds nothing but punctuation (Unicode categories P…); symbols and emoji are
    not."""
    return bool(text) and all(unicodedata.category(character).startswith("P") for character in text)


def unknown_piece(text: str) -> str:
    """The name of a piece that the model reads as `<unk>`: with the text for which it has no
    piece."""
    return f"<unk:{text if len(text) <= _LONGEST_UNKNOWN else text[:_LONGEST_UNKNOWN] + '…'}>"


def is_cut_off(piece: str) -> bool:
    """True if a piece is named by the beginning of the text for which there is none."""
    text = unknown_text(piece)
    return text is not None and len(text) > _LONGEST_UNKNOWN


@lru_cache(4096)
def unknown_text(piece: str) -> str | None:
    """The text for which a model has no piece, by the name of what stands for it; None for other
    pieces."""
    match = _UNKNOWN_PIECE.fullmatch(piece)
    return match[1] if match else None


@lru_cache(4096, typed=True)
def readable(piece: str) -> str:
    """One piece without its `▁`; blanks are a `◦` each, a byte its character or its code, as
    `0xE2`."""
    if (unknown := unknown_text(piece)) is not None:
        return unknown
    if is_special(piece):
        return str(piece)
    spelled_out = BYTE_PIECE.sub(byte_text, piece).replace(SPACE, " ")
    text = spelled_out.strip().replace("  ", " ")
    return text or VISIBLE_SPACE * max(1, len(spelled_out))


def byte_text(byte: re.Match[str]) -> str:
    value = int(byte[1], 16)
    if chr(value) in BREAKS:
        return BREAKS[chr(value)]
    return chr(value) if 0x20 < value < 0x7F else f" 0x{value:02X} "


@lru_cache(4096)
def raw(piece: str) -> bytes:
    """What a piece spells, with its `▁`."""
    if (unknown := unknown_text(piece)) is not None:
        return (SPACE * piece.startswith(SPACE) + unknown).encode()
    texts = BYTE_PIECE.split(piece)  # texts, with the numbers of bytes between them
    return b"".join(
        bytes.fromhex(text) if at % 2 else text.encode() for at, text in enumerate(texts)
    )


def spelled(pieces: Sequence[str]) -> str:
    if len(pieces) == 1:
        return readable(pieces[0])
    text = b"".join(map(raw, pieces)).decode("utf-8", "replace").replace(SPACE, " ")
    return text.translate(_SIGNS_OF_BREAKS).strip() or VISIBLE_SPACE


def piece_groups(pieces: Sequence[str]) -> tuple[Group, ...]:
    """One group per piece, with its text; those that stand for no text are special."""
    return tuple(
        Group(place, place + 1, piece.removeprefix(SPACE), is_special(piece))
        for place, piece in enumerate(pieces)
    )


def groups_at(pieces: Sequence[str], starts: Iterable[int]) -> tuple[Group, ...]:
    """The groups that begin at some pieces, of which the first is one."""
    bounds = pairwise([*starts, len(pieces)])
    return tuple(
        Group(
            start,
            stop,
            spelled(pieces[start:stop]),
            stop == start + 1 and is_special(pieces[start]),
        )
        for start, stop in bounds
    )


def character_groups(pieces: Sequence[str]) -> tuple[Group, ...]:
    """One group per piece; the byte pieces of one character share a group."""
    # before: the bytes of the last group
    starts = list[int]()
    before = b""
    for index, piece in enumerate(pieces):
        if before and _CUT_OFF.search(before) and 0x80 <= raw(piece)[0] < 0xC0:
            before += raw(piece)
        else:
            starts.append(index)
            before = raw(piece) if in_bytes(piece) else b""
    return groups_at(pieces, starts)


def word_groups(pieces: Sequence[str]) -> tuple[Group, ...]:
    """One group per space-separated word; a special piece is a group of its own, unless it is
    `<unk>`, and so is one that breaks a line."""
    alone = [(is_special(piece) and piece != UNK) or is_break(piece) for piece in pieces]
    begins = [
        not i or alone[i] or alone[i - 1] or piece[:1] == SPACE for i, piece in enumerate(pieces)
    ]
    return groups_at(pieces, (i for i, first in enumerate(begins) if first))
