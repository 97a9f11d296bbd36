"""A text as its sentences: the marks of many scripts, and what a full stop does not end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.text.sentences import joined, sentences, split


@pytest.mark.parametrize(
    "parts",
    [
        ("He left. ", "She stayed.\n", "Why? ", "Go!!! ", "Wait… ", "What?!"),
        ("Dr. Smith met Mr. J. R. Brown at 3.15 p.m. ", "They paid $3.50. ", "20 people came."),
        ("“Why?” he asked. ", "“Because.” ", "She laughed. ", "(See fig. 2.) ", "Done."),
        ("So do I. ", "He left the U.S. Army at 5 p.m. 3 times, etc., and so on... perhaps."),
        (
            "Am 3. Oktober war es, z. B. hier. ",
            "Der 2. Weltkrieg endete 1945. ",
            "Er war 12. ",
            "Dann ging er.",
        ),
        ("1. First do this. ", "2. Then that."),
        ("Sim. ", "— Não. ", "¿Qué? ", "¡Sí!"),
        ("你好。", "再见！", "“好。”他说。"),
        ("「はい。」と言った。", "３．１４です。 ", "そう。"),
        ("هل أنت هنا؟ ", "نعم. ", "لا."),
        ("यह है। ", "वह है।"),
        ("Τι κάνεις; ", "Καλά."),
        ("one; Two: three, Four.txt and www.a.org",),
        ("  ",),
        (),
    ],
)
def test_marks_end_sentences_and_abbreviations_and_numbers_stay_whole(parts: tuple[str, ...]) -> None:
    assert split("".join(parts)) == parts


@given(st.text(st.sampled_from('aB3 .!?…。"”)-\nΑ;Dr')) | st.text())
def test_joined_the_sentences_are_the_text_and_none_is_blank(text: str) -> None:
    parts = split(text)
    assert "".join(parts) == text
    assert len(parts) < 2 or all(part.strip() for part in parts)
    assert all(split(part.strip()) == (part.strip(),) for part in parts if part.strip())


def test_each_sentence_stands_after_what_the_text_begins_with() -> None:
    assert sentences(" One.  Two. ") == ("One.", "Two.")
    assert sentences(">>fra<< One. Two.", ">>fra<<") == (">>fra<< One.", ">>fra<< Two.")
    assert sentences(" \n") == ()


def test_sentences_are_one_line_with_spaces_where_their_script_has_them() -> None:
    assert joined(("Ja.\n", " Nein. ", "", "好。", "「是。」", "再见")) == "Ja. Nein. 好。「是。」再见"
