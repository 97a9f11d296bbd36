from __future__ import annotations

import pytest

from transformer.text.tokenizer import Tokenizer
from transformer.text.words import character_groups, is_special, readable, starts_word, word_groups


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        ("▁Haus", "Haus"),
        ("s", "s"),
        ("▁", "◦"),
        ("</s>", "</s>"),
        ("<0xE2>", "0xE2"),
        ("<0x3C>", "<"),
        ("<0x0A>", "0x0A"),
    ],
)
def test_a_piece_reads_without_its_mark(piece: str, text: str) -> None:
    assert readable(piece) == text


def test_special_and_byte_pieces_are_known() -> None:
    assert is_special("<s>")
    assert not is_special("▁<s>")
    assert starts_word("▁a")
    assert not starts_word("a")


def test_the_bytes_of_one_character_form_one_group(tokenizer: Tokenizer) -> None:
    pieces = tokenizer.pieces(tokenizer.encode("😀é€z"))
    texts = [group.text for group in character_groups(pieces)]
    assert texts[-4:] == ["😀", "é", "€", "z"]


def test_groups_cover_all_pieces_in_order(tokenizer: Tokenizer) -> None:
    pieces = ("<s>", *tokenizer.pieces(tokenizer.encode("one 😀two  three")), "</s>")
    for groups in (character_groups(pieces), word_groups(pieces)):
        assert [index for group in groups for index in group.indices] == list(range(len(pieces)))


def test_broken_bytes_stay_alone() -> None:
    groups = character_groups(["<0xF0>", "<0x9F>", "▁a", "<0x80>", "<0xE2>"])
    assert [(group.start, group.stop) for group in groups] == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert [group.text for group in groups] == ["�", "a", "0x80", "0xE2"]


def test_words_begin_at_spaces_and_special_pieces_stand_alone() -> None:
    groups = word_groups(["<s>", "▁Ha", "us", ",", "▁", "<0xC3>", "<0xA9>", "</s>"])
    assert [group.text for group in groups] == ["<s>", "Haus,", "é", "</s>"]


def test_words_of_a_real_sentence_are_its_words(tokenizer: Tokenizer) -> None:
    text = "one 😀 seven, zwölf"
    pieces = (*tokenizer.pieces(tokenizer.encode(text)), "</s>")
    assert [group.text for group in word_groups(pieces)] == [*text.split(), "</s>"]


def test_no_pieces_make_no_groups() -> None:
    assert word_groups([]) == ()
    assert character_groups([]) == ()
