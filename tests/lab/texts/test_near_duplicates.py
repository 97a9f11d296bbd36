from __future__ import annotations

import pytest

from lab.texts.near_duplicates import NearDuplicates, grams, words

HELD = "The old house stands on a hill above the quiet river."


@pytest.mark.parametrize(
    "text",
    [
        HELD,
        "the old house, stands on a hill: above the quiet river!",
        "The new house stands on a hill above the quiet river.",
        "The house stands on a hill above the quiet river.",
        "The old house stands on a hill above the very quiet river.",
        "Everyone knows that the old house stands on a hill above the quiet river and the village.",
        "house stands on a hill above",
    ],
)
def test_sentences_with_the_same_words_one_edit_or_most_4_grams_are_near(text):
    assert text in NearDuplicates(["Something else.", HELD])


@pytest.mark.parametrize(
    "text",
    [
        "The old house stands near a wood above the quiet river.",
        "Rivers are quiet.",
        "The hill above the river stands on a quiet old house.",
        "the quiet river",
    ],
)
def test_sentences_that_share_less_are_not(text):
    assert text not in NearDuplicates(["Something else.", HELD])


def test_one_edit_counts_only_if_three_words_are_shared():
    near = NearDuplicates(["Tom is here.", "Tom is very happy."])
    assert "Tom is there." not in near
    assert "Tom is here now." in near
    assert "Tom is happy." in near
    assert "Tom is very sad." in near
    assert "Tom very is happy." not in near


def test_a_replaced_word_stays_in_its_place():
    near = NearDuplicates(["one two three four"])
    assert "one two x four" in near
    assert "x one two four" not in near


def test_more_than_70_percent_of_the_shorter_sentence_s_4_grams_are_near():
    held = " ".join(f"w{n}" for n in range(13))
    near = NearDuplicates([held])
    assert len(grams(words(held))) == 10
    assert " ".join(f"w{n}" for n in range(11)) + " x y z a b" in near
    assert " ".join(f"w{n}" for n in range(10)) + " x y z a b" not in near


def test_a_phrase_of_fewer_than_three_4_grams_inside_a_longer_sentence_is_not_near():
    assert "above the quiet river" not in NearDuplicates([HELD])
    assert HELD not in NearDuplicates(["on a hill above the"])
    assert HELD in NearDuplicates(["on a hill above the quiet"])


def test_typographic_apostrophes_and_case_are_not_seen():
    assert words("Don’t STOP, Tom's here.") == ("don't", "stop", "tom's", "here")
