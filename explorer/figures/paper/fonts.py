"""The fonts that can draw a text: installed Noto fonts one after the other, then whatever is installed."""

from __future__ import annotations

from functools import lru_cache

from matplotlib.font_manager import FontEntry, FontPath, fontManager, get_font

_FIRST = ("Noto Sans", "DejaVu Sans")
"""Families for most texts; the second one comes with matplotlib."""
_NEXT = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans", "Noto", "")
"""Beginnings of the names of families, best first."""
_UNDRAWN = frozenset(map(chr, range(0xFE00, 0xFE10)))
"""Marks that choose between two drawings of the letter before them."""


def families(text: str) -> tuple[list[str], list[str]]:
    """The fonts that together draw a text, best first, and the letters that none of them has."""
    found = {letter: _family_of(letter) for letter in sorted(set(text) - _UNDRAWN) if not letter.isspace()}
    used = [name for name in _entries() if name in _FIRST or name in found.values()]
    return used, [letter for letter, family in found.items() if family is None]


def without_truetype(names: list[str]) -> list[str]:
    """The families that a PDF cannot hold as TrueType, which publishers prefer."""
    return [name for name in names if not _entries()[name].fname.lower().endswith(".ttf")]


@lru_cache(maxsize=20_000)
def _family_of(letter: str) -> str | None:
    """The best family that has a letter."""
    files = ((name, FontPath(each.fname, each.index)) for name, each in _entries().items())
    return next((name for name, file in files if get_font(file).get_char_index(ord(letter))), None)


@lru_cache(maxsize=1)
def _entries() -> dict[str, FontEntry]:
    """The upright, regular font of every installed family, best first."""
    upright = [each for each in fontManager.ttflist if each.style == "normal"]
    regular = {each.name: each for each in upright if each.weight in (400, "normal", "regular", "book")}
    regular.pop("Last Resort High-Efficiency", None)  # draws a frame in place of every letter
    return {name: regular[name] for name in sorted(regular, key=_rank)}


def _rank(name: str) -> tuple[bool, int, str]:
    return name not in _FIRST, next(i for i, start in enumerate(_NEXT) if name.startswith(start)), name
