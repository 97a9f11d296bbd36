from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

from lab.language.cooccurrence import cooccurrence


def slowly(sentences, vocab, window, smoothing):
    """The definition, one pair of places at a time: a full table."""
    near = Counter()
    for sentence in sentences:
        for at, one in enumerate(sentence):
            for other in range(max(0, at - window), min(len(sentence), at + window + 1)):
                if other != at and one >= 0 and sentence[other] >= 0:
                    near[one, sentence[other]] += 1
    counts = Counter()
    for (one, _), n in near.items():
        counts[one] += n
    total, smooth = sum(counts.values()), sum(n**smoothing for n in counts.values())
    table = np.zeros((vocab, vocab))
    for (one, other), n in near.items():
        expected = counts[one] / total * counts[other] ** smoothing / smooth
        table[one, other] = max(0.0, math.log(n / total / expected))
    return table


def random_sentences(seed=1, vocab=15):
    drawn = random.Random(seed)
    return [[drawn.randrange(-1, vocab) for _ in range(drawn.randrange(12))] for _ in range(60)]


@pytest.mark.parametrize(("window", "smoothing"), [(5, 0.75), (2, 1.0), (1, 0.75)])
def test_it_equals_the_definition_pair_by_pair(window, smoothing):
    found = cooccurrence(random_sentences(), 15, window, smoothing)
    table = np.zeros((15, 15))
    table[found.rows, found.columns] = found.values
    assert table == pytest.approx(slowly(random_sentences(), 15, window, smoothing))
    assert (found.values > 0).all()


def test_cosines_are_those_of_the_full_table():
    found = cooccurrence(random_sentences(), 16)
    table = slowly(random_sentences(), 16, 5, 0.75)
    lengths = np.linalg.norm(table, axis=1)
    full = table @ table.T / np.maximum(np.outer(lengths, lengths), 1e-12)
    assert found.cosines([3, 0, 15]) == pytest.approx(full[[3, 0, 15]])
    assert (found.cosines([15]) == 0).all(), "a piece that never occurs has an empty row"


def test_pieces_of_different_sentences_are_never_near():
    found = cooccurrence([[0, 1], [2, 3]], 4)
    assert set(zip(found.rows.tolist(), found.columns.tolist(), strict=True)) <= {
        (0, 1),
        (1, 0),
        (2, 3),
        (3, 2),
    }


def test_words_in_the_same_company_are_neighbours():
    """0 and 1 both stand between 4 and 5, and 2 and 3 between 6 and 7; 0 and 1 never meet."""
    sentences = [[4, word, 5] for word in (0, 1)] * 20 + [[6, word, 7] for word in (2, 3)] * 20
    neighbours = cooccurrence(sentences, 8).neighbours([0, 2], [0, 1, 2, 3], k=1)
    assert neighbours.ids.tolist() == [[1], [3]]
    assert neighbours.cosines == pytest.approx(np.ones((2, 1)))


def test_counts_are_those_of_the_text():
    assert cooccurrence([[0, 1, 1], [1, -1, 2]], 4).counts.tolist() == [1, 3, 1, 0]
