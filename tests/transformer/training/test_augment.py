from __future__ import annotations

from transformer.text.pairs import SentencePair
from transformer.training.augment import augmented, join_pairs, plain, plain_pairs, swapped_pairs, typed_pairs


def test_joined_pairs_stay_translations_of_each_other() -> None:
    joined = join_pairs([SentencePair("a", "A"), SentencePair("b", "B")], 1.0, seed=1)
    assert len(joined) == 2
    assert all(pair.source.upper() == pair.target and 3 <= len(pair.source) <= 7 for pair in joined)


def test_plain_text_is_lower_case_with_spaced_punctuation() -> None:
    assert plain("Hello, you're Tom!") == "hello , you ' re tom !"
    assert plain_pairs([SentencePair("Oh.", "Ach.")], 1.0, seed=1) == [SentencePair("oh .", "ach .")]


def test_typed_pairs_change_the_source_only() -> None:
    assert typed_pairs([SentencePair("Oh no!", "Ach nein!")], 1.0, 1) == [SentencePair("oh no", "Ach nein!")]
    assert typed_pairs([SentencePair("?!", "Was?")], 1.0, 1) == [SentencePair("?!", "Was?")]


def test_extra_pairs_follow_the_given_ones_in_their_shares() -> None:
    pairs = [SentencePair(f"A{n}.", f"B{n}.") for n in range(100)]
    made = augmented(pairs, {"join": 0.1, "plain": 0.2, "typed": 0.1}, seed=1)
    assert made[:100] == pairs
    assert len(made) == 110 + 22 + 11
    assert augmented(pairs, {}, seed=1) == pairs


def test_names_and_numbers_are_swapped_on_both_sides_alike() -> None:
    pairs = [
        SentencePair("Tom was born in 1992.", "Tom wurde 1992 geboren."),
        SentencePair("Mary likes Boston.", "Maria mag Boston."),
        SentencePair("Tom's dog is old.", "Toms Hund ist alt."),
        SentencePair("In Rome he saw a tom.", "In Rom sah er Tom."),
    ]
    made = swapped_pairs(pairs, 1.0, seed=3)
    assert 1 <= len(made) <= 2
    for pair in made:
        shared = {word for word in pair.source.rstrip(".").split() if word in pair.target.rstrip(".").split()}
        assert shared
        assert "1992" not in pair.source + pair.target
        assert "Maria" not in pair.source
    assert swapped_pairs(pairs, 1.0, seed=3) == made
    names = swapped_pairs([SentencePair(f"Name{n} x", f"Name{n} y") for n in "abcdef"], 1.0, seed=1)
    assert all(pair.source.split()[0] == pair.target.split()[0] for pair in names)
    assert {pair.source for pair in names} != {f"Name{n} x" for n in "abcdef"}
