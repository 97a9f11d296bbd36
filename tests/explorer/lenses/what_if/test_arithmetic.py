"""Other scores, weights and masks of a head, against the same arithmetic in torch or written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from closed_form import CASES

from explorer.lenses.what_if import arithmetic
from explorer.lenses.what_if.arithmetic import Masking, leak, masked_weights, two_heads
from transformer.translator import Translator

RANDOM = np.random.default_rng(0)
QUERY, KEY, VALUE = RANDOM.normal(size=8), RANDOM.normal(size=(5, 8)), RANDOM.normal(size=(5, 8))
OTHER, OTHER_KEY = RANDOM.normal(size=8), RANDOM.normal(size=(5, 8))
MASK = np.array([True, True, True, True, False])
ALL, NONE = np.ones(5, bool), np.zeros(5, bool)
SCORES = KEY @ QUERY / math.sqrt(8)
SHARES = np.array([0, 0.25, 0.75, 0, 0])


def test_the_softmax_is_torch_s_over_the_visible_keys_of_every_row():
    rows, masks = np.stack([SCORES, 3 * SCORES]), np.stack([MASK, ALL])
    expected = torch.tensor(rows).masked_fill(~torch.tensor(masks), -torch.inf).softmax(-1)
    np.testing.assert_allclose(arithmetic.softmax(rows, masks), expected, atol=1e-12)
    assert arithmetic.softmax(np.array([1e4, 0.0]), np.ones(2, bool)).tolist() == [1.0, 0.0]
    assert arithmetic.softmax(SCORES, NONE).tolist() == [0.0] * 5


@pytest.mark.parametrize("factor", [0.2, 1.0, 50.0])
def test_saturation_is_the_jacobian_s_norm_and_the_share_of_the_largest_entropy(factor):
    scores = torch.tensor(SCORES * factor)
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(0), scores)
    weights = arithmetic.softmax(SCORES * factor, ALL)
    entropy = -sum(w * math.log(w) for w in weights if w) / math.log(5)
    expected = (weights.max(), entropy, float(jacobian.norm()))
    assert arithmetic.saturation(weights, ALL) == pytest.approx(expected, abs=1e-7)


def test_saturation_of_a_choice_and_of_one_key():
    assert arithmetic.saturation(np.array([0.0, 1.0, 0.0]), np.ones(3, bool)) == (1.0, 0.0, 0.0)
    assert arithmetic.saturation(np.array([1.0, 0.0]), np.array([True, False])) == (1.0, 0.0, 0.0)


BELL = [0.2 * math.exp(-((j - 1.5) ** 2) / (2 * 1.5**2)) for j in range(5)]
CENTRE = 5 / (1 + math.exp(-sum(map(math.tanh, QUERY)) / math.sqrt(8))) - 1
JOINED = np.concatenate([KEY, OTHER_KEY], axis=1) @ np.concatenate([QUERY, OTHER]) / 4
TANH = [sum(math.tanh(a + b) for a, b in zip(QUERY, key, strict=True)) / math.sqrt(8) for key in KEY]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (arithmetic.plain_products(QUERY, KEY), SCORES * math.sqrt(8)),
        (arithmetic.without_projections(QUERY, KEY), SCORES),
        (arithmetic.additive(QUERY, KEY), TANH),
        (arithmetic.bilinear(QUERY, KEY), QUERY @ np.diag(np.linspace(2, 0, 8)) @ KEY.T),
        (arithmetic.joined((KEY @ QUERY, OTHER_KEY @ OTHER), 8), JOINED),
        (arithmetic.hard(np.array([0.0, 2.0, 1.0, -1.0, 9.0]), MASK), [0, 1, 0, 0, 0]),
        (arithmetic.hard(SCORES, NONE), [0] * 5),
        (arithmetic.local_mask(MASK, 3, 1), [False, False, True, True, False]),
        (arithmetic.local_mask(MASK, 0.4, 0), NONE),
        (arithmetic.predicted_centre(QUERY, 5), CENTRE),
        (arithmetic.bell(np.full(5, 0.2), 1.5, 3), BELL),
        (arithmetic.taken(SHARES, VALUE), (VALUE[1] + 3 * VALUE[2]) / 4),
        (arithmetic.entropy(np.stack([SHARES, np.eye(5)[1]])), [0.75 * math.log(4 / 3) + math.log(4) / 4, 0]),
    ],
)
def test_other_arithmetic_is_what_its_formula_says(given, expected):
    np.testing.assert_allclose(given, expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_without_the_subtraction_a_softmax_breaks_from_the_named_score(dtype):
    limit, seen = arithmetic.overflow_from(dtype), np.array([True, True, False])
    with np.errstate(over="ignore"):
        assert np.isfinite(np.exp(dtype(limit * 0.999)))
        assert np.isinf(np.exp(dtype(limit * 1.001)))
    small, large = np.array([1.0, 2.0, 3.0]), np.array([200.0, 1.0, 0.0])
    expected = arithmetic.softmax(small, seen)
    np.testing.assert_allclose(arithmetic.unshifted(small, seen, dtype), expected, atol=2e-3)
    np.testing.assert_array_equal(arithmetic.unshifted(large, seen, dtype), [np.nan, 0, 0])


CAUSAL = np.tri(3, dtype=bool)
LOGS = np.log(np.array([[1, 2, 3], [1, 1, 2], [2, 1, 1]], dtype=np.float32))


@pytest.mark.parametrize(
    ("way", "masked", "sums", "unequal", "zeros", "alone"),
    [
        (Masking.MINUS_INFINITY, [0, 0, 0], [1, 1, 1], [False] * 3, 3, 0),
        (Masking.ZERO, [2 / 3, 1 / 3, 0], [1, 1, 1], [False] * 3, 0, 1),
        (Masking.NONE, [5 / 6, 1 / 2, 0], [1, 1, 1], [False] * 3, 0, 1),
        (Masking.AFTER, [0, 0, 0], [1 / 6, 1 / 2, 1], [True, True, False], 3, 0),
    ],
)
def test_a_way_to_mask_leaks_what_it_leaks(way, masked, sums, unequal, zeros, alone):
    found = leak(masked_weights(LOGS, CAUSAL, way), CAUSAL)
    assert found.masked == pytest.approx(masked)
    assert found.sums == pytest.approx(sums)
    assert (found.unequal.tolist(), found.cells, found.zeros) == (unequal, 3, zeros)
    assert masked_weights(LOGS[:1], np.zeros((1, 3), bool), way).sum() == pytest.approx(alone)


def test_masked_weights_are_the_model_s_own_and_bear_large_scores(solved: Translator, translator: Translator):
    for model in (solved, translator):
        run = model.translate(CASES[model.name].sentence if model.name in CASES else "one two three four")
        for kind in ("encoder", "decoder", "cross"):
            view = run.head(kind, 0, 1)
            weights = masked_weights(view.scores, view.mask, Masking.MINUS_INFINITY)
            np.testing.assert_allclose(weights, view.weights, atol=1e-6)
    large = np.array([[900, -900, 30]], dtype=np.float32)
    assert masked_weights(large, np.array([[True, True, False]]), Masking.ZERO).tolist() == [[1, 0, 0]]


def test_seven_matrices_compute_what_multi_head_attention_computes():
    toy = two_heads()
    x = torch.tensor(toy.x, dtype=torch.float64)
    outputs = []
    for head in toy.heads:
        q, k, v = (x @ torch.tensor(each, dtype=torch.float64) for each in head.matrices)
        outputs.append(torch.nn.functional.scaled_dot_product_attention(q, k, v))
        np.testing.assert_allclose(head.output, outputs[-1], atol=1e-12)
    whole = torch.cat(outputs, dim=1) @ torch.tensor(toy.w_o, dtype=torch.float64)
    np.testing.assert_allclose(toy.output, whole, atol=1e-12)
    assert (len(toy.matrices), toy.numbers) == (7, 6 * 8 + 16)
    finds = [
        (arithmetic.WORDS[int(head.weights[1].argmax())], head.weights[1].max() > 0.9) for head in toy.heads
    ]
    assert finds == [("cat", True), ("mouse", True)]
