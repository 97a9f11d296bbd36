"""Fonts for every script: what they cannot draw is known before it is drawn."""

from __future__ import annotations

import pytest
from matplotlib.font_manager import FontProperties, findfont, get_font

from explorer.figures.paper.fonts import families, without_truetype

NOWHERE = "\U0010ffff"
"""Not a character and never one; only a font that frames whatever is missing has something for it."""


def test_latin_needs_only_the_usual_fonts_which_a_pdf_holds_as_truetype() -> None:
    chosen, missing = families("The cat, müde₁")
    assert set(chosen) - {"Noto Sans"} == {"DejaVu Sans"}
    assert missing == without_truetype(chosen) == []


@pytest.mark.parametrize("text", ["猫が", "القطة", "बिल्ली", "😀", "Привет", f"a{NOWHERE}"])
def test_each_letter_has_a_font_or_is_named_as_missing(text: str) -> None:
    chosen, missing = families(text)
    fonts = [get_font(findfont(FontProperties(family=name))) for name in chosen]
    for letter in text:
        assert any(font.get_char_index(ord(letter)) for font in fonts) != (letter in missing)
    assert (NOWHERE in missing) == (NOWHERE in text)
