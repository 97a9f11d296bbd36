from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from explorer.lenses.what_if import arithmetic as what_if

RANDOM = np.random.default_rng(0)
QUERY, KEY, VALUE = RANDOM.normal(size=8), RANDOM.normal(size=(5, 8)), RANDOM.normal(size=(5, 8))
MASK = np.array([True, True, True, True, False])
SCORES = KEY @ QUERY / math.sqrt(8)


def test_the_softmax_is_torch_s_over_the_visible_keys():
    expected = torch.tensor(SCORES).masked_fill(~torch.tensor(MASK), -torch.inf).softmax(0)
    np.testing.assert_allclose(what_if.softmax(SCORES, MASK), expected, atol=1e-12)
    assert what_if.softmax(SCORES, MASK)[4] == 0


def test_the_softmax_bears_large_scores_and_rows_without_a_key():
    assert what_if.softmax(np.array([1e4, 0.0]), np.array([True, True])).tolist() == [1.0, 0.0]
    assert what_if.softmax(SCORES, np.zeros(5, dtype=bool)).tolist() == [0.0] * 5


@pytest.mark.parametrize("factor", [0.2, 1.0, math.sqrt(8), 50.0])
def test_the_gradient_is_the_jacobian_s_norm(factor):
    scores = torch.tensor(SCORES * factor)
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(0), scores)
    weights = what_if.softmax(SCORES * factor, np.ones(5, dtype=bool))
    found = what_if.saturation(weights, np.ones(5, dtype=bool))
    assert found.gradient == pytest.approx(float(jacobian.norm()), abs=1e-7)
    assert found.largest == weights.max()


def test_saturation_of_equal_weights_and_of_a_choice():
    equal = what_if.saturation(np.full(4, 0.25), np.ones(4, dtype=bool))
    assert (equal.largest, equal.entropy) == pytest.approx((0.25, 1.0))
    choice = what_if.saturation(np.array([0.0, 1.0, 0.0]), np.ones(3, dtype=bool))
    assert (choice.largest, choice.entropy, choice.gradient) == (1.0, 0.0, 0.0)
    assert what_if.saturation(np.array([1.0]), np.array([True])).entropy == 0.0


def test_scores_without_projections_compare_the_inputs():
    x, sources = RANDOM.normal(size=16), RANDOM.normal(size=(3, 16))
    expected = [sum(a * b for a, b in zip(x, source, strict=True)) / 4 for source in sources]
    np.testing.assert_allclose(what_if.without_projections(x, sources), expected)


def test_additive_scores_are_those_of_bahdanau_with_identity_weights():
    expected = [sum(math.tanh(a + b) for a, b in zip(QUERY, key, strict=True)) / math.sqrt(8) for key in KEY]
    np.testing.assert_allclose(what_if.additive(QUERY, KEY), expected)


def test_bilinear_scores_weigh_each_dimension():
    matrix = np.diag(np.linspace(2, 0, 8))
    np.testing.assert_allclose(what_if.bilinear(QUERY, KEY), QUERY @ matrix @ KEY.T)


def test_plain_products_compare_the_inputs_undivided():
    x, sources = RANDOM.normal(size=16), RANDOM.normal(size=(3, 16))
    np.testing.assert_allclose(
        what_if.plain_products(x, sources), 4 * what_if.without_projections(x, sources)
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_power_overflows_exactly_from_the_named_score(dtype):
    limit = what_if.overflow_from(dtype)
    with np.errstate(over="ignore"):
        assert np.isfinite(np.exp(dtype(limit * 0.999)))
        assert np.isinf(np.exp(dtype(limit * 1.001)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_softmax_without_the_subtraction_breaks_for_large_scores_only(dtype):
    seen = np.ones(3, dtype=bool)
    small, large = np.array([1.0, 2.0, -1.0]), np.array([200.0, 1.0, 0.0])
    np.testing.assert_allclose(what_if.unshifted(small, seen, dtype), what_if.softmax(small, seen), atol=2e-3)
    assert np.isnan(what_if.unshifted(large, seen, dtype)[0])
    assert what_if.softmax(large, seen)[0] == 1


def test_hard_attention_takes_the_best_visible_key():
    scores = np.array([0.0, 2.0, 1.0, -1.0, 9.0])
    assert what_if.hard(scores, MASK).tolist() == [0, 1, 0, 0, 0]
    assert what_if.hard(scores, np.zeros(5, dtype=bool)).sum() == 0


def test_local_attention_keeps_the_mask_and_a_window():
    assert what_if.local_mask(MASK, 3, 1).tolist() == [False, False, True, True, False]
    assert what_if.local_mask(MASK, 0, 0).tolist() == [True, False, False, False, False]


def test_the_predicted_centre_lies_within_the_keys_and_follows_the_query():
    expected = 5 / (1 + math.exp(-sum(math.tanh(each) for each in QUERY) / math.sqrt(8))) - 1
    assert what_if.predicted_centre(QUERY, 5) == pytest.approx(expected)
    low, high = (what_if.predicted_centre(np.full(8, each), 5) for each in (-9.0, 9.0))
    assert -1 < low < high < 4


def test_the_bell_halves_no_weight_at_the_centre_and_narrows_with_the_radius():
    weights = np.full(5, 0.2)
    found = what_if.bell(weights, 2.0, 2)
    expected = [0.2 * math.exp(-((j - 2) ** 2) / (2 * (2 / 2) ** 2)) for j in range(5)]
    np.testing.assert_allclose(found, expected)
    assert what_if.bell(weights, 2.0, 1).sum() < found.sum() < 1


def test_two_heads_joined_are_one_head_on_the_joined_vectors():
    other_query, other_key = RANDOM.normal(size=8), RANDOM.normal(size=(5, 8))
    query, key = np.concatenate([QUERY, other_query]), np.concatenate([KEY, other_key], axis=1)
    expected = key @ query / math.sqrt(16)
    np.testing.assert_allclose(what_if.joined((KEY @ QUERY, other_key @ other_query), 8), expected)


def test_what_is_taken_is_the_weighted_sum():
    np.testing.assert_allclose(
        what_if.taken(np.array([0, 0.25, 0.75, 0, 0]), VALUE), (VALUE[1] + 3 * VALUE[2]) / 4
    )
