from __future__ import annotations

import math

import numpy as np
import pytest

from transformer.runs.language.perplexity import per_piece, per_word, perplexity, ranged

TEXTS = ["The old house stands.", "Yes.", "It is  late, isn't it?"]


def test_words_are_parted_by_white_space_and_each_sentence_has_one_end():
    table = per_word(np.array([-1.0, -2.0, -3.0]), TEXTS)
    assert table.tolist() == [[1, 5], [2, 2], [3, 6]]


def test_even_probabilities_give_their_number_as_perplexity():
    pieces = [4, 1, 8]
    logs = np.array([-(n + 1) * math.log(50) for n in pieces])
    assert perplexity(per_piece(logs, pieces).sum(0)) == pytest.approx(50)


def test_the_interval_holds_the_perplexity_of_all_sentences():
    drawn = np.random.default_rng(0).uniform(5, 40, 200)
    table = per_word(-drawn, [TEXTS[n % 3] for n in range(200)])
    found = ranged(table)
    assert found["value"] == pytest.approx(perplexity(table.sum(0)), rel=1e-4)
    assert found["low"] < found["value"] < found["high"]
