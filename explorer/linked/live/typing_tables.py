"""What a page needs to read a text and write its pieces as Python does: constants, sets of characters."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from transformer.text import typed, words

_SURROGATES = range(0xD800, 0xE000)


@cache
def typing_tables() -> dict[str, Any]:
    """Tables of `static/engine-1`, for JSON; a set of characters is lengths left out, and in it, in turns."""
    return {
        "spaces": _lengths(str.isspace),
        "blank": _lengths(typed.is_blank),
        "hidden": _lengths(typed.draws_nothing),
        "shaping": _lengths(typed.shapes),
        "digits": _lengths(str.isdigit),
        "special": "|".join([*map(re.escape, sorted(words.SPECIAL_PIECES)), words.LANGUAGE.pattern]),
        "joiners": typed.JOINERS,
        "plain": typed.PLAIN,
    }


def _lengths(contains: Callable[[str], bool]) -> list[int]:
    lengths, inside = [0], False
    for code in range(0x110000):
        if (code not in _SURROGATES and contains(chr(code))) != inside:
            inside = not inside
            lengths.append(0)
        lengths[-1] += 1
    return lengths if inside else lengths[:-1]
