"""Texts as people paste them: what is cleaned, what becomes plain, and which word a piece belongs to."""

from __future__ import annotations

import unicodedata

import pytest

from transformer.text.tokenizer import Tokenizer
from transformer.text.typed import PLAIN, clean, read
from transformer.text.words import Group, unknown_text, word_groups
from transformer.translator import Translator, load_translator

INVISIBLE = "\u200b\u2060\ufeff\u00ad\u200e\u202e\u2066\ufe0f\u034f\u180e\U000e0041"


@pytest.fixture(scope="module")
def production() -> Translator:
    return load_translator("assets/models/en-pt")


@pytest.mark.parametrize("character", INVISIBLE)
def test_what_draws_nothing_is_not_read(character: str) -> None:
    assert clean(f"{character}The hou{character}se{character} is old") == "The house is old"


@pytest.mark.parametrize("blank", "\u00a0\u2009\u202f\u3000\u2028\u2800\u3164\x07\t\n")
def test_every_blank_is_one_space(blank: str) -> None:
    assert clean(f"{blank}a{blank}{blank}b{blank}") == "a b"


def test_a_joiner_stays_where_it_shapes_what_is_drawn() -> None:
    assert clean("می\u200cخواهم") == "می\u200cخواهم"
    assert clean("👩\u200d👧") == "👩\u200d👧"
    assert clean("Auf\u200clage") == "Auflage"


@pytest.mark.parametrize("text", ["", "  ", "a  b", "e\u0301", "\ud83d\ude42", "x\u200by — “z”…", "¨a¨"])
def test_what_was_read_reads_as_itself(text: str) -> None:
    once = read(text, lambda _: True).text
    assert read(once, lambda _: True) == read(once)
    assert clean(once) == once == unicodedata.normalize("NFC", once)


def test_plain_counterparts_are_no_letters_and_no_currencies() -> None:
    for character, plain in PLAIN.items():
        assert unicodedata.category(character)[0] in "PSL"
        assert unicodedata.category(character) not in ("Sc", "Ll", "Lu", "Lo")
        assert plain.isascii()


def test_only_what_a_vocabulary_lacks_becomes_plain() -> None:
    found = read("It’s – “old”", lambda character: character in "’“”")
    assert found.text == 'It\'s – "old"'
    assert found.plain == ("’", "“", "”")
    assert read("`a` b", "`".__eq__).text == "'a' b"  # of plain letters, too


def test_words_are_numbered_as_they_were_typed() -> None:
    found = read("a\u200b \u200b b—c d", lambda _: True)
    assert found.text == "a b - c d"
    assert found.words == (0, 2, 2, 2, 3)


@pytest.mark.parametrize(
    "text", ["Müller isn’t “here”—now…", "½ a¨b £5 日本語 x", "👨\u200d👩\u200d👧 ok ﬁne"]
)
def test_every_word_has_its_pieces_whatever_became_of_it(production: Translator, text: str) -> None:
    groups = production.cut(text).groups()
    assert len(groups) == len(text.split())
    assert [i for group in groups for i in group.indices] == list(range(len(production.ids(text))))


def test_an_unknown_character_does_not_end_a_word(production: Translator) -> None:
    tokens = production.translate("Müller lives in Łódź.", capture=False).source_tokens
    assert [group.text for group in word_groups(tokens)] == ["Müller", "lives", "in", "Łódź.", "</s>"]
    assert list(filter(None, map(unknown_text, tokens))) == ["ü", "Ł", "ź"]


def test_what_has_no_piece_is_said(production: Translator, tokenizer: Tokenizer) -> None:
    notes = production.translate("It costs £5 and Müller isn’t here.", capture=False).notes
    assert notes == (
        "This model has no piece for ’; it reads it as the plain '.",
        "This model has no piece for £ and ü; it reads them as unknown.",
    )
    assert tokenizer.cut("one 日 two").notes() == ("This model has no piece for 日; it spells it in bytes.",)
    assert production.translate("The house is old.", capture=False).notes == ()


def test_an_empty_output_is_said(production: Translator) -> None:
    assert "The model wrote an empty text." in production.translate("日本語", capture=False).notes


def test_a_given_translation_says_what_its_vocabulary_lacks(production: Translator) -> None:
    run = production.force("The old house.", "A casa £ velha.")
    assert "This model has no piece for £; it reads it as unknown." in run.notes
    assert "<unk:£>" in run.target_tokens
    assert run.attention is not None
    assert run.attention.audit().passed
    assert production.force("The old house.", run.target_tokens, capture=False).log_probs == pytest.approx(
        run.log_probs, abs=1e-4
    )


def test_groups_name_their_typed_words(production: Translator) -> None:
    assert production.cut("a b").groups() == (Group(0, 1, "a"), Group(1, 2, "b"))
