"""Pieces as people read them: without `▁`, bytes joined to characters, pieces joined to words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .tokenizer import BOS, EOS, PAD, SPACE, UNK

SPECIAL_PIECES = frozenset({PAD, BOS, EOS, UNK})
VISIBLE_SPACE = "␣"
_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")


@dataclass(frozen=True)
class Group:
    """Neighbouring pieces that are read as one.

    Attributes:
        start: Index of the first piece, from 0.
        stop: One past the last.
        text: What they spell, without `▁`.
    """

    start: int
    stop: int
    text: str

    @property
    def indices(self) -> range:
        """The pieces' positions."""
        return range(self.start, self.stop)


def is_special(piece: str) -> bool:
    """Whether a piece stands for no text: `<pad>`, `<s>`, `</s>`, `<unk>`."""
    return piece in SPECIAL_PIECES


def starts_word(piece: str) -> bool:
    """Whether a space stands before the piece."""
    return piece.startswith(SPACE)


def byte_of(piece: str) -> int | None:
    """The value of a byte piece such as `<0xE2>`; None for any other piece."""
    match = _BYTE_PIECE.fullmatch(piece)
    return int(match[1], 16) if match else None


def readable(piece: str) -> str:
    """One piece without its `▁`; a lone space as `␣`, a lone byte as the character or as `0xE2`."""
    byte = byte_of(piece)
    if byte is None:
        return piece if is_special(piece) else piece.replace(SPACE, " ").strip() or VISIBLE_SPACE
    return chr(byte) if 0x20 < byte < 0x7F else f"0x{byte:02X}"


def character_groups(pieces: Sequence[str]) -> tuple[Group, ...]:
    """Every piece alone, but the byte pieces of one character together."""
    groups: list[Group] = []
    start = 0
    while start < len(pieces):
        stop = _character_end(pieces, start)
        groups.append(Group(start, stop, _spelled(pieces[start:stop])))
        start = stop
    return tuple(groups)


def word_groups(pieces: Sequence[str]) -> tuple[Group, ...]:
    """The pieces of one space-separated word together; special pieces alone."""
    starts = [
        index
        for index, piece in enumerate(pieces)
        if index == 0 or starts_word(piece) or is_special(piece) or is_special(pieces[index - 1])
    ]
    bounds = pairwise([*starts, len(pieces)])
    return tuple(Group(start, stop, _spelled(pieces[start:stop])) for start, stop in bounds)


def _character_end(pieces: Sequence[str], start: int) -> int:
    """One past the pieces of the character that begins at `start`; in UTF-8 the lead byte says how many."""
    lead = byte_of(pieces[start])
    following = 0 if lead is None else (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)
    stop = start + 1
    while following and stop < len(pieces) and 0x80 <= (byte_of(pieces[stop]) or 0) < 0xC0:
        stop, following = stop + 1, following - 1
    return stop


def _spelled(pieces: Sequence[str]) -> str:
    if len(pieces) == 1:
        return readable(pieces[0])
    parts = [bytes([byte]) if (byte := byte_of(piece)) is not None else piece.encode() for piece in pieces]
    text = b"".join(parts).decode("utf-8", "replace").replace(SPACE, " ").strip()
    return text or VISIBLE_SPACE
