from __future__ import annotations

import math

import pytest

from explorer.figures.base import labels
from transformer.text import words


@pytest.mark.parametrize(
    ("piece", "shown"),
    [
        ("▁tired", "tired"),
        ("</s>", "</s>"),
        ("▁", "◦"),
        ("", "◌"),
        ("  ", "◦◦"),
        ("<0xF0>", "0xF0"),
        ("<0x3C>", "<"),
        ("\u202e", "U+202E"),
        ("▁<unk:日本>", "<unk> 日本"),
        ("a\x07b", "aU+0007b"),
        ("​", "U+200B"),
    ],
)
def test_every_piece_has_a_visible_form(piece: str, shown: str):
    assert labels.display(piece) == shown


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("geschrieben", "‿geschrieben"),
        ("▁geschrieben", "geschrieben"),
        ("5", "‿5"),
        ("я", "‿я"),
        (",", ","),
        ("日本", "日本"),
        ("▁", "◦"),
        ("<0xF0>", "0xF0"),
        ("</s>", "</s>"),
    ],
)
def test_a_piece_that_begins_without_a_space_is_marked(token: str, shown: str):
    assert labels.piece(token) == shown


def test_a_sequence_of_pieces_is_marked_after_its_first_and_whole_words_never():
    assert labels.pieces(["ge", "schrieben", "▁ge", "ge"]) == ["ge", "‿schrieben", "ge", "‿ge"]
    assert labels.names(["▁ge", "ge"]) == ["ge", "‿ge"], "two names, so no number"
    assert labels.pieces(["geschrieben", "hat"]) == ["geschrieben", "hat"]


def test_numbers_carry_a_true_minus_sign():
    assert labels.number(-1.234) == "−1.23"
    assert labels.number(1.0, "+.1f") == "+1.0"


def test_markup_and_colour_signs_are_escaped():
    assert labels.escape("<b>&#000001") == "&lt;b&gt;&amp;&#35;000001"


def test_long_tokens_are_cut_with_an_ellipsis():
    assert labels.shorten("Donaudampfschiff") == "Donaudampfsc…"
    assert labels.shorten("Donau") == "Donau"


@pytest.mark.parametrize(
    "token",
    ["WWWWWWWWWW", "日本語の文章です", "geschriebenes", "iiiiiiiiiiiiiiiiiiiiiiiiiiii", "e\u0301" * 30],
)
def test_labels_are_cut_by_how_wide_they_are_drawn_with_their_index(token: str):
    for name in labels.names([token, token], labels.ROOM):
        assert "…" in name
        assert 4 < labels.width(name) <= labels.ROOM + 0.4


def test_a_word_of_eleven_letters_is_written_in_full():
    assert labels.ticks(["▁geschrieben"]) == ["geschrieben"]


def test_repeated_tokens_are_numbered_and_single_ones_not():
    assert labels.names(["▁die", "▁Katze", "▁die"]) == ["die₁", "Katze", "die₂"]


def test_people_count_from_one():
    assert labels.head_name(0, 0) == "L1 H1"
    assert labels.head_phrase(2, 4) == "head 5 of layer 3"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (3e-8, "0"), (0.00004, "0.00004"), (0.0031, "0.003"), (0.126, "0.13"), (1.0, "1.00")],
)
def test_a_weight_that_is_not_0_never_reads_0(value: float, text: str) -> None:
    assert labels.telling(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-3e-8, "0"),
        (0.00004, "+0.00004"),
        (-0.0031, "−0.003"),
        (1.0, "+1.00"),
        (math.nan, "not known"),
    ],
)
def test_a_difference_reads_0_only_where_nothing_changed(value: float, text: str) -> None:
    assert labels.moved(value) == text


@pytest.mark.parametrize(
    ("share", "texts"),
    [
        ((-0.006, -0.011, 0.0004), ("−0.6", "−1.1", "0.0")),
        ((0.001, -0.013, 0.013), ("+0.1", "−1.3", "+1.3")),
        ((0.21, 0.172, 0.249), ("+21", "+17", "+25")),
        ((0.0, -0.04, 0.03), ("0", "−4", "+3")),
    ],
)
def test_an_interval_of_at_most_two_points_has_a_decimal(
    share: tuple[float, float, float], texts: tuple[str, str, str]
) -> None:
    assert labels.hundredths(*share, "+") == texts


@pytest.mark.parametrize("token", [">>fra<<", "__fr__", "fra_Latn", "fr_XX", "</s>", "▁a", "fr", "▁fra_Latn"])
def test_the_models_own_marks_are_those_that_its_vocabulary_knows(token: str) -> None:
    assert labels.is_special(token) is words.is_special(token)
    assert not labels.is_special(token) or labels.piece(token) == token


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.54e-7, "1.5 × 10⁻⁷"), (-2.0, "−2.0 × 10⁰"), (0.0, "0"), (3e12, "3.0 × 10¹²")],
)
def test_small_and_large_numbers_have_a_power_of_ten(value: float, text: str) -> None:
    assert labels.scientific(value) == text
