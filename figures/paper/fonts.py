"""The fonts that can draw a text: installed Noto fonts one after the other, then whatever is installed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.font_manager import FontEntry

_FIRST = ("Noto Sans", "DejaVu Sans")
"""Families for most texts; the second one comes with matplotlib."""
_NEXT = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans", "Noto", "")
"""Beginnings of the names of further families, best first."""
_PLAIN = {"style": ("normal",), "weight": (400, "normal", "regular", "book")}
_TRUETYPE = {b"\x00\x01\x00\x00", b"true"}
"""Beginning of a TrueType file; all others (CFF outlines, collections) cannot be embedded as TrueType."""
_PLACEHOLDERS = "Last Resort"
"""Beginnings of the names of fonts that draw a frame in place of every letter."""
_VARIANTS = range(0xFE00, 0xFE10)
"""Marks that choose between two drawings of the letter before them; they have no drawing themselves."""


def families(
    texts: Iterable[str],  # everything that will be written
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fonts that together draw all texts.

    Returns:
        The families in the order in which each letter looks for its font, and the letters that none has.
    """
    letters = {letter for text in texts for letter in text}
    missing = {letter for letter in letters if not letter.isspace() and ord(letter) not in _VARIANTS}
    chosen: list[str] = []
    for name in _installed():
        if name not in _FIRST and not missing:
            break
        drawn = {letter for letter in missing if _has(name, letter)}
        if drawn or name in _FIRST:
            chosen.append(name)
            missing -= drawn
    return tuple(chosen), tuple(sorted(missing))


def without_truetype(names: Iterable[str]) -> tuple[str, ...]:
    """The families that have no TrueType outlines, which publishers prefer inside a PDF."""
    return tuple(name for name in names if _begins(_entries()[name].fname) not in _TRUETYPE)


def _begins(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(4)


def _installed() -> list[str]:
    """Names of all families, best first."""
    names = _entries()
    first = [name for name in _FIRST if name in names]
    return first + sorted((name for name in names if name not in first), key=_rank)


def _rank(name: str) -> tuple[int, str]:
    return next(i for i, start in enumerate(_NEXT) if name.startswith(start)), name


@lru_cache(maxsize=1)
def _entries() -> dict[str, FontEntry]:
    """The upright, regular font of every installed family."""
    from matplotlib.font_manager import fontManager

    return {
        entry.name: entry
        for entry in reversed(fontManager.ttflist)
        if entry.style in _PLAIN["style"]
        and entry.weight in _PLAIN["weight"]
        and not entry.name.startswith(_PLACEHOLDERS)
    }


@lru_cache(maxsize=20_000)
def _has(name: str, letter: str) -> bool:
    from matplotlib.ft2font import FT2Font

    entry = _entries()[name]
    try:
        font = FT2Font(entry.fname, face_index=entry.index)
    except (OSError, RuntimeError):
        return False
    return font.get_char_index(ord(letter)) != 0
