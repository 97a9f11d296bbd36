"""Names of saved files: they say the sentence and suit every file system."""

from __future__ import annotations

import unicodedata

import pytest

from explorer.app.controls.export import file_name

TEXTS = (
    "The woman who wrote the book is my sister.",
    "CON",
    "../../etc/passwd",
    'a<b>:"|?*\\ #000001 %00 \u202eevil\u202c\nnew line',
    "猫がネズミを追いかけた。" * 20,
    "القطة التي طاردت الفأر",
    "बिल्ली ने चूहे का पीछा किया",
    "😀" * 300,
    "𝔸" * 300,
    "x" * 5_000,
    "",
    " . ",
    "\ud800",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("figure", ["cross L2 H6", "𝔸" * 80])
def test_every_file_system_accepts_the_name(text: str, figure: str) -> None:
    name = file_name(text, figure)
    assert 0 < len(f"{name}.json".encode()) <= 255
    assert {unicodedata.category(letter)[0] for letter in name.replace("-", "")} <= set("LMN")
    assert not name.startswith("-")
    assert not name.endswith("-")
    assert name == unicodedata.normalize("NFC", name)


def test_the_name_says_the_sentence_and_the_figure_in_whole_words() -> None:
    assert file_name(TEXTS[0], "cross L2 H6") == "the-woman-who-wrote-the-book-is-my-cross-l2-h6"
    assert file_name("Müde war die Katze!") == "müde-war-die-katze"
    assert "बिल्ली" in file_name(TEXTS[6])
    assert file_name("", "next") == "next"


@pytest.mark.parametrize("text", ["con", "NUL", "Com1", " aux. ", "COM¹", "lpt9"])
def test_names_that_windows_keeps_for_itself_are_changed(text: str) -> None:
    assert file_name(text).startswith("figure-")


def test_a_name_of_nothing_is_still_a_name() -> None:
    assert file_name("", "…") == "figure"
