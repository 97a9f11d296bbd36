from __future__ import annotations

from transformer.text.pairs import SentencePair
from transformer.training.augment import augmented


def extra(name: str, pairs: list[SentencePair], seed: int = 1) -> list[SentencePair]:
    """As many pairs of one maker as there are pairs."""
    return augmented(pairs, {name: 1.0}, seed)[len(pairs) :]


def test_joined_pairs_stay_translations_of_each_other() -> None:
    joined = extra("join", [SentencePair("a", "A"), SentencePair("b", "B")])
    assert len(joined) == 2
    assert all(pair.source.upper() == pair.target and 3 <= len(pair.source) <= 7 for pair in joined)


def test_plain_text_is_lower_case_with_spaced_punctuation() -> None:
    pair = SentencePair("Hello, you're Tom!", "Ach.")
    assert extra("plain", [pair]) == [SentencePair("hello , you ' re tom !", "ach .")]


def test_typed_pairs_change_the_source_only() -> None:
    assert extra("typed", [SentencePair("Oh no!", "Ach nein!")]) == [SentencePair("oh no", "Ach nein!")]
    assert extra("typed", [SentencePair("?!", "Was?")]) == [SentencePair("?!", "Was?")]


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
    made = extra("swap", pairs, seed=3)
    assert 1 <= len(made) <= 2
    for pair in made:
        shared = {word for word in pair.source.rstrip(".").split() if word in pair.target.rstrip(".").split()}
        assert shared
        assert "1992" not in pair.source + pair.target
        assert "Maria" not in pair.source
    assert extra("swap", pairs, seed=3) == made
    names = extra("swap", [SentencePair(f"Name{n} x", f"Name{n} y") for n in "abcdef"])
    assert all(pair.source.split()[0] == pair.target.split()[0] for pair in names)
    assert {pair.source for pair in names} != {f"Name{n} x" for n in "abcdef"}
