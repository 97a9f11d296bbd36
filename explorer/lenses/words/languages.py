"""The languages of a model by its card, and their names. No PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformer.storage.description import read_header

LANGUAGES = {
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "pt": "Portuguese",
}
"""English names of languages by their codes."""


def languages_of(directory: Path) -> tuple[str, str] | None:
    """The codes of the two languages that a card names, such as ``("en", "de")``; None if it names others."""
    codes = read_header(directory).language
    return (codes[0], codes[1]) if len(codes) == 2 else None


def languages_in_words(codes: Sequence[str]) -> str:
    """Languages by their codes, such as "English → German"; empty without codes."""
    return " → ".join(LANGUAGES.get(code, code) for code in codes)
