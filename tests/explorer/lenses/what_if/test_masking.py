from __future__ import annotations

import numpy as np
import pytest
from closed_form import CASES

from explorer.lenses.what_if.masking import Masking, leak, masked_scores, masked_weights
from transformer.translator import Translator

CAUSAL = np.tri(3, dtype=bool)
SCORES = np.log(np.array([[1, 2, 3], [1, 1, 2], [2, 1, 1]], dtype=np.float32))


def test_minus_infinity_leaves_nothing_on_masked_keys_and_rows_that_sum_to_one():
    weights = masked_weights(SCORES, CAUSAL, Masking.MINUS_INFINITY)
    assert weights == pytest.approx(np.array([[1, 0, 0], [0.5, 0.5, 0], [0.5, 0.25, 0.25]]))
    found = leak(weights, CAUSAL)
    assert (found.masked == 0).all()
    assert (found.unequal.sum(), found.cells, found.zeros) == (0, 3, 3)


def test_a_score_of_zero_counts_as_one_and_leaks():
    weights = masked_weights(SCORES, CAUSAL, Masking.ZERO)
    assert weights[0] == pytest.approx([1 / 3] * 3)
    found = leak(weights, CAUSAL)
    assert found.masked == pytest.approx([2 / 3, 1 / 3, 0])
    assert (found.unequal.sum(), found.zeros) == (0, 0)


def test_without_a_mask_later_keys_take_what_their_scores_give_them():
    found = leak(masked_weights(SCORES, CAUSAL, Masking.NONE), CAUSAL)
    assert found.masked == pytest.approx([5 / 6, 1 / 2, 0])
    assert not found.unequal.any()


def test_zeros_after_the_softmax_leak_nothing_but_rows_no_longer_sum_to_one():
    weights = masked_weights(SCORES, CAUSAL, Masking.AFTER)
    found = leak(weights, CAUSAL)
    assert found.sums == pytest.approx([1 / 6, 1 / 2, 1])
    assert (found.masked == 0).all()
    assert (found.unequal.tolist(), found.zeros) == ([True, True, False], 3)


@pytest.mark.parametrize("way", Masking)
def test_a_row_without_any_visible_key_gives_no_error(way: Masking):
    weights = masked_weights(SCORES[:1], np.zeros((1, 3), bool), way)
    assert weights.sum() == pytest.approx(1.0 if way in (Masking.ZERO, Masking.NONE) else 0.0)


def test_scores_are_left_as_they_are_where_the_mask_comes_after_the_softmax():
    assert masked_scores(SCORES, CAUSAL, Masking.AFTER) is SCORES
    assert np.isneginf(masked_scores(SCORES, CAUSAL, Masking.MINUS_INFINITY)[~CAUSAL]).all()
    assert (masked_scores(SCORES, CAUSAL, Masking.ZERO)[~CAUSAL] == 0).all()


def test_minus_infinity_gives_the_model_s_own_weights(solved: Translator, translator: Translator):
    for model in (solved, translator):
        text = CASES[model.name].sentence if model.name in CASES else "one two three four"
        translation = model.translate(text, max_length=8)
        for kind in ("encoder", "decoder", "cross"):
            view = translation.head(kind, 0, 1)
            weights = masked_weights(view.scores, view.mask, Masking.MINUS_INFINITY)
            np.testing.assert_allclose(weights, view.weights, atol=1e-6)


def test_large_scores_give_no_overflow():
    scores = np.array([[900, -900, 30]], dtype=np.float32)
    assert masked_weights(scores, np.array([[True, True, False]]), Masking.ZERO)[0, 0] == 1
