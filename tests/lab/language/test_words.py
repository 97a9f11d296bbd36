from __future__ import annotations

import numpy as np
import pytest

from lab.language.words import GROUPS, grouped_words, measure_words, one_piece, whole_words
from transformer.text.pairs import read_pairs
from transformer.text.vocabulary import Tokenizer

LINES = [pair.source for pair in read_pairs("assets/sample/tatoeba-en-de.tsv.gz")]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(LINES, 1000, at_most=True)


@pytest.fixture(scope="module")
def counts(tokenizer):
    ids = [id_ for line in LINES for id_ in tokenizer.encode(line)]
    return np.bincount(ids, minlength=tokenizer.vocab_size)


def test_no_word_stands_in_two_groups():
    words = [word for group in GROUPS.values() for word in group]
    assert len(words) == len(set(words))


def test_a_group_takes_its_most_frequent_one_piece_words(tokenizer, counts):
    single = one_piece(tokenizer)
    groups = grouped_words(tokenizer, counts, per_group=2, least=1)
    assert set(groups) <= set(GROUPS)
    assert groups["pronouns"]
    for name, ids in groups.items():
        known = [single(word) for word in GROUPS[name] if single(word) is not None]
        assert len(ids) <= 2
        assert min(counts[ids]) >= max((counts[each] for each in known if each not in ids), default=0)
    assert grouped_words(tokenizer, counts, least=10**6) == {}


def test_rare_words_and_parts_of_words_are_no_candidates(tokenizer, counts):
    found = whole_words(tokenizer, counts, least=20)
    assert found
    assert all(tokenizer.pieces([id_])[0][1:].isalpha() and counts[id_] >= 20 for id_ in found)


def test_words_have_neighbours_at_the_first_and_the_last_snapshot(tokenizer):
    random = np.random.default_rng(1)
    tables = [(step, random.normal(size=(tokenizer.vocab_size, 8))) for step in (0, 10)]
    found = measure_words(tokenizer, tables, [tokenizer.encode(line) for line in LINES], least=3)
    n = len(found["words"])
    assert found["steps"] == [0, 10]
    assert n == len(found["groups"]) == len(found["company"])
    assert np.array(found["neighbours"]).shape == (2, n, 8)
    assert all(0 <= share <= 1 for share in found["agree"])
