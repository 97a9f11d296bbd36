"""Names of saved files: what they show and of which sentence, in letters that every file system accepts."""

from __future__ import annotations

import unicodedata

_LONGEST = 40
"""Most letters that each part of a name keeps."""
_MOST_BYTES = 200
"""Most bytes of a name without its ending; file systems take 255."""
_TAKEN = {"con", "prn", "aux", "nul", *(f"{port}{i}" for port in ("com", "lpt") for i in "0123456789¹²³")}
"""Names that Windows keeps for itself."""


def file_name(
    # what the name says, the sentence first; each is cut after a word, and an empty one is left out
    *parts: str,
) -> str:
    """Joins texts to a name without an ending: lower-case words of any script, with hyphens between them."""
    name = "-".join(filter(None, map(_part, parts)))
    name = name.encode()[:_MOST_BYTES].decode(errors="ignore").rstrip("-")
    if not name:
        return "figure"
    return f"figure-{name}" if name in _TAKEN else name


def _part(text: str) -> str:
    letters = unicodedata.normalize("NFC", text.lower())
    words = "".join(letter if unicodedata.category(letter)[0] in "LMN" else " " for letter in letters).split()
    kept = ""
    for word in words:
        longer = f"{kept}-{word}" if kept else word[:_LONGEST]
        if len(longer) > _LONGEST:
            break
        kept = longer
    return kept
