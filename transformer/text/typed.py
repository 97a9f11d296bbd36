"""Text as typed, made ready for a model: the one place that cleans, and that carries words through to pieces.

Control characters and white space become single spaces, and characters that draw nothing go. Typographic
characters become their plain counterpart where a vocabulary lacks them. A word is what stood between two
spaces of the typed text: its number is carried along, never counted from what became of it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from transformer.text.words import SPACE, Group, in_bytes, unknown_piece

BLANKS = "\u2800\u3164\u115f\u1160\uffa0"
"""Blanks that Unicode counts among signs and letters."""
JOINERS = "\u200c\u200d"
_PLAIN_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC")
PLAIN = {
    **dict.fromkeys("‘’‚‛′‹›ʼ`´", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–−", "-"),
    **dict.fromkeys("—―", " - "),
    "…": "...",
}
"""Typographic characters and their plain counterparts; no currency and no letter, which would change the
meaning."""


MOST_LISTED = 10
"""Characters that a note names."""


@dataclass(frozen=True)
class Read:
    """A text as a model reads it."""

    text: str
    words: tuple[int, ...]  # for each of its space-separated words, the word of the typed text, from 0
    plain: tuple[str, ...] = ()  # typographic characters that became plain, each once, in order


@dataclass(frozen=True)
class PiecedText:
    """A text in pieces, without special tokens."""

    read: Read
    ids: tuple[int, ...]
    pieces: tuple[str, ...]  # `▁` kept; a text without a piece of its own is `<unk:text>`
    # for each piece, the word of the typed text that it stands in, from 0; −1 for one that stands for no text
    words: tuple[int, ...]
    unknown: tuple[str, ...]  # characters read as unknown, each once, in order
    spelled: tuple[str, ...]  # characters spelled in bytes, each once, in order
    start: int | None = None  # id of the piece that the output begins with, if the text names one

    def notes(self) -> tuple[str, ...]:
        """Sentences for the reader: what the vocabulary has no piece for."""
        if not (self.read.plain or self.unknown or self.spelled):
            return ()
        plain = listed(dict.fromkeys(PLAIN[each].strip() for each in self.read.plain))
        said = (
            (self.read.plain, f"reads {{}} as the plain {plain}"),
            (self.unknown, "reads {} as unknown"),
            (self.spelled, "spells {} in bytes"),
        )
        whom = {each: "them" if len(each) > 1 else "it" for each, _ in said}
        return tuple(
            f"This model has no piece for {listed(found)}; it {done.format(whom[found])}."
            for found, done in said
            if found
        )

    def groups(self) -> tuple[Group, ...]:
        """The pieces of each word of the typed text; a word that drew nothing has none."""
        texts = list(zip(self.read.words, self.read.text.split(), strict=True))
        found = []
        for word, places in groupby(range(len(self.words)), self.words.__getitem__):
            first, *others = places
            if word < 0:
                continue
            name = " ".join(text for number, text in texts if number == word)
            found.append(Group(first, first + 1 + len(others), name))
        return tuple(found)


def clean(text: str) -> str:
    """The text without what no model reads: NFC, single spaces, nothing that draws nothing.

    A pair of surrogates becomes the character that it encodes; a lone surrogate becomes U+FFFD.
    """
    return read(text).text


def read(text: str, lacks: Callable[[str], bool] = lambda _: False) -> Read:
    """Cleans a text; ``lacks`` says for which typographic characters a vocabulary has no piece."""
    if text.isascii() and text.isprintable() and PLAIN.keys().isdisjoint(text):
        words = text.split()
        return Read(" ".join(words), tuple(range(len(words))))
    typed = without_surrogates(text).split()
    plain = tuple(char for char in dict.fromkeys("".join(typed)) if char in PLAIN and lacks(char))
    table = str.maketrans({char: PLAIN[char] for char in plain})
    found = [(i, part) for i, word in enumerate(typed) for part in _visible(word).translate(table).split()]
    return Read(" ".join(part for _, part in found), tuple(number for number, _ in found), plain)


def _visible(word: str) -> str:
    """A word in NFC, with spaces for control characters, and without characters that draw nothing."""
    kept = ""
    for char in word:
        if is_blank(char):
            kept += " "
        elif char in JOINERS:
            kept += char * shapes(kept[-1:])
        elif not draws_nothing(char):
            kept += char
    return unicodedata.normalize("NFC", kept)


def is_blank(char: str) -> bool:
    """True for control characters and signs that look like a space."""
    return unicodedata.category(char) == "Cc" or char in BLANKS


def shapes(before: str) -> bool:
    """True if a joiner after this character shapes what is drawn: in emoji, and in scripts that join."""
    if not before or unicodedata.category(before)[0] not in "LMS":
        return False
    return not unicodedata.name(before, "").startswith(_PLAIN_SCRIPTS)


def draws_nothing(char: str) -> bool:
    """True for format characters (Cf), variation selectors and the combining grapheme joiner."""
    return unicodedata.category(char) == "Cf" or char == "\u034f" or 0xFE00 <= ord(char) <= 0xFE0F


def without_surrogates(text: str) -> str:
    """Replaces surrogate pairs by the character they encode and lone surrogates by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cut(
    reading: Read,  # the text
    ids: Sequence[int],  # ids of its pieces
    pieces: Sequence[str],  # its pieces as sentencepiece writes them: an unknown one is its own text
    offsets: Sequence[tuple[int, int]],  # where each begins in the text, and where it ends
    unknown_id: int,  # id of `<unk>`
) -> PiecedText:
    """The pieces with their words, and with names for what is unknown."""
    text, named, words = reading.text, list(pieces), []
    unknown: dict[str, None] = {}
    spelled: dict[str, None] = {}
    word, counted = 0, 0
    for i, (start, stop) in enumerate(offsets):
        first = start + (text[start : start + 1] == " ")
        word, counted = word + text.count(" ", counted, first), max(counted, first)
        words.append(reading.words[min(word, len(reading.words) - 1)])
        if ids[i] == unknown_id:
            own = text[start:stop].strip()
            mark = SPACE * pieces[i].startswith(SPACE)
            named[i] = mark + unknown_piece(own or pieces[i].removeprefix(SPACE))
            unknown |= dict.fromkeys(own or text[first])
        elif "<0x" in pieces[i] and in_bytes(pieces[i]):
            spelled[text[first]] = None
    return PiecedText(reading, tuple(ids), tuple(named), tuple(words), tuple(unknown), tuple(spelled))


def listed(parts: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`; of many, the first and the number of the others."""
    found = list(parts)
    if len(found) > MOST_LISTED:
        found[MOST_LISTED:] = [f"{len(found) - MOST_LISTED} more"]
    return " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))
