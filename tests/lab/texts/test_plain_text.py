from __future__ import annotations

import random

import pytest

from lab.texts.near_duplicates import NearDuplicates
from lab.texts.plain_text import distinct, parts, shuffled

NOUNS = ["cat", "dog", "house", "river", "tree", "stone", "boat", "child", "king", "queen"]


def sentences(count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(NOUNS, k=9)) + f" number{seed}x{n}." for n in range(count)]


def test_sentences_that_differ_in_case_and_spaces_are_kept_once_over_all_sources():
    found = distinct({"a": ["Come in.", "come  in.", "...", "12"], "b": ["COME IN.", "Come in!"]})
    assert found == {"a": ["Come in."], "b": ["Come in!"]}


def test_held_out_parts_have_a_share_of_every_source_by_its_size():
    sources = {"a": sentences(300, 1), "b": sentences(100, 2), "c": sentences(3, 3)}
    found = parts(sources, 40)
    for part in (found.valid, found.heldout):
        assert len(part) == 40
        assert sum(text in sources["a"] for text in part) == pytest.approx(30, abs=1)
        assert sum(text in sources["b"] for text in part) == pytest.approx(10, abs=1)
    assert not set(found.valid) & set(found.heldout)


def test_no_training_sentence_is_near_a_held_out_or_a_test_sentence():
    sources = {"a": sentences(200, 1), "b": sentences(200, 2)}
    test = [sources["a"][7].replace(".", " indeed."), "queen of hearts"]
    found = parts(sources, 20, test)
    near = NearDuplicates([*found.valid, *found.heldout, *test])
    assert not [text for text in found.train if text in near]
    assert len(found.train) + sum(found.near.values()) == 400 - 2 * 20
    assert sum(found.near.values()) >= 1


def test_the_parts_depend_on_the_sentences_alone():
    sources = {"a": sentences(60, 1), "b": sentences(30, 2)}
    other = {name: list(reversed(texts)) for name, texts in sources.items()}
    assert parts(sources, 6) == parts(other, 6)
    assert list(parts(sources, 6).train) == shuffled(parts(sources, 6).train)


@pytest.mark.parametrize("held", [0, 5])
def test_too_few_sentences_are_refused(held):
    with pytest.raises(ValueError, match="cannot be held out"):
        parts({"a": sentences(10, 1)}, held)
