"""Text as typed, made ready for a model: the one place that cleans.

Control characters and white space become single spaces, and characters that draw nothing go.
Typographic characters become their plain counterpart where a vocabulary lacks them. A word is what
stood between two spaces of the typed text: its number is carried along, never counted from what
became of it.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

BLANKS = "\u2800\u3164\u115f\u1160\uffa0"
"""Blanks that Unicode counts among signs and letters."""
JOINERS = "\u200c\u200d"
_SURROGATE = re.compile("[\ud800-\udfff]")
PLAIN = {
    **dict.fromkeys("‘’‚‛′‹›ʼ`´", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–−", "-"),
    **dict.fromkeys("—―", " - "),
    "…": "...",
}
"""Typographic characters and their plain counterparts; no currency and no letter, which would
change the meaning."""


@dataclass(frozen=True)
class CleanText:
    """A text as a model reads it."""

    text: str
    words: tuple[
        int, ...
    ]  # for each of its space-separated words, the word of the typed text, from 0
    plain: tuple[str, ...] = ()  # typographic characters that became plain, each once, in order


def clean(text: str) -> str:
    """The text without what no model reads: NFC, single spaces, nothing that draws nothing.

    A pair of surrogates becomes the character that it encodes; a lone surrogate becomes U+FFFD.
    """
    return read(text).text


def read(text: str, lacks: Callable[[str], bool] = lambda _: False) -> CleanText:
    """Cleans a text; ``lacks`` says for which typographic characters a vocabulary has no piece."""
    if text.isascii() and text.isprintable() and PLAIN.keys().isdisjoint(text):  # most texts
        words = text.split()
        return CleanText(" ".join(words), tuple(range(len(words))))
    typed = composed(without_surrogates(text)).split()
    plain = tuple(char for char in dict.fromkeys("".join(typed)) if char in PLAIN and lacks(char))
    table = str.maketrans({char: PLAIN[char] for char in plain})
    parts = [
        (i, part)
        for i, word in enumerate(typed)
        for part in _visible(word.translate(table)).split()
    ]
    return CleanText(
        " ".join(part for _, part in parts), tuple(number for number, _ in parts), plain
    )


def as_typed(text: str) -> CleanText:
    """The text as it was typed, for a vocabulary that has pieces for line breaks and blanks."""
    text = without_surrogates(text)
    return CleanText(text, tuple(range(len(text.split()))))


def _visible(word: str) -> str:
    """A word in NFC, with spaces for control characters, and without characters that draw
    nothing."""
    drawn = list[str]()
    for char in word:
        if char in JOINERS:
            first = max(0, len(drawn) - 1)
            while first and _composes(drawn[first]):
                first -= 1
            drawn[first:] = composed("".join(drawn[first:]))
            if shapes("".join(drawn[-1:])):
                drawn.append(char)
        elif not draws_nothing(char):
            drawn.append(" " if is_blank(char) else char)
    return composed("".join(drawn))


def _composes(char: str) -> bool:
    """True for marks and parts of Hangul's syllables, which may become one with what stands
    before."""
    return unicodedata.category(char)[0] == "M" or 0x1160 <= ord(char) <= 0x11FF


def composed(text: str) -> str:
    """The text in NFC; in linear time, where the library's own takes quadratic for marks out of
    order."""
    if unicodedata.is_normalized("NFC", text):
        return text
    letters = "".join(unicodedata.normalize("NFD", char) for char in text)
    runs = groupby(letters, lambda char: unicodedata.combining(char) > 0)
    ordered = (char for _, run in runs for char in sorted(run, key=unicodedata.combining))
    return unicodedata.normalize("NFC", "".join(ordered))


def is_blank(char: str) -> bool:
    """True for control characters and signs that look like a space."""
    return unicodedata.category(char) == "Cc" or char in BLANKS


def shapes(before: str) -> bool:
    """True if a joiner after this character shapes what is drawn: in emoji, and in scripts that
    join."""
    if not before or unicodedata.category(before)[0] not in "LMS":
        return False
    return not unicodedata.name(before, "").startswith(("LATIN", "GREEK", "CYRILLIC"))


def draws_nothing(char: str) -> bool:
    """True for format characters (Cf), variation selectors and the combining grapheme joiner."""
    return unicodedata.category(char) == "Cf" or char == "\u034f" or 0xFE00 <= ord(char) <= 0xFE0F


def without_surrogates(text: str) -> str:
    """Replaces surrogate pairs by the character they encode and lone surrogates by U+FFFD."""
    if _SURROGATE.search(text) is None:  # of a vocabulary, nearly every piece
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
