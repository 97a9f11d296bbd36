from __future__ import annotations

from pathlib import Path

from closed_form import CASES

from lab.relations.meanings import AGAIN, ANTONYM, ANTONYMS, OTHER_FORM, meanings
from lab.relations.treebanks import Tree
from transformer.runs.translator import load_translator

WORDS = tuple(CASES["copy"].sentence.split())


def tree(*lemmas: str | None) -> Tree:
    return Tree(" ".join(WORDS), WORDS, (), None, (*lemmas, *[None] * (len(WORDS) - len(lemmas))))


def test_a_head_that_looks_one_word_on_finds_a_word_that_comes_again_next(
    closed_form_models: dict[str, Path],
) -> None:
    model = load_translator(closed_form_models["copy"])
    found = meanings(model, [tree("a", "a")] * 160 + [tree("a", None, "a")] * 80, [])
    assert (found["sentences"], found["skipped"]) == (240, 0)
    forward = next(each for each in found["relations"] if each["direction"] == "earlier to later")
    assert forward["relation"] == OTHER_FORM
    assert (forward["layer"], forward["head"]) == (0, 0)
    assert forward["share"] == forward["baseline"]
    assert 0.5 < forward["share"] < 0.8


def test_the_same_form_and_another_form_are_told_apart(closed_form_models: dict[str, Path]) -> None:
    model = load_translator(closed_form_models["copy"])
    words = ("one", "One", "two", "three")
    trees = [Tree(" ".join(words), words, (), None, ("one", "one", None, None))] * 240
    found = meanings(model, trees, [])
    assert {each["relation"] for each in found["relations"]} <= {AGAIN}


def test_only_sentences_with_both_words_of_a_pair_are_read(closed_form_models: dict[str, Path]) -> None:
    model = load_translator(closed_form_models["copy"])
    texts = ["Good or bad?", "A good day.", "Day and night, night and day."]
    found = meanings(model, [], texts)
    assert found["sentences"] + found["skipped"] == 2
    assert not found["relations"]


def test_every_antonym_has_two_words() -> None:
    assert all(len(pair) == 2 for pair in ANTONYMS)
    assert ANTONYM not in {word for pair in ANTONYMS for word in pair}
