from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from transformer import attention
from transformer.attention import SCALED_DOT, AttentionMask, LocalWindow, ScoreRule, attend, attention_weights

HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 4


def vectors(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Query, key and value of a batch of two."""
    torch.manual_seed(seed)
    return tuple(torch.randn(2, HEADS, n, WIDTH) for n in (QUERIES, KEYS, KEYS))


def rules() -> list[ScoreRule]:
    torch.manual_seed(1)
    return [SCALED_DOT, ScoreRule("dot"), ScoreRule("additive", torch.randn(HEADS, WIDTH))]


def by_hand(rule: ScoreRule, query: np.ndarray, key: np.ndarray, head: int) -> np.ndarray:
    """(queries, keys) of one head, cell by cell."""
    made = np.zeros((len(query), len(key)))
    for i, q in enumerate(query.astype(float)):
        for j, k in enumerate(key.astype(float)):
            if rule.vector is not None:
                made[i, j] = rule.vector[head].double().numpy() @ np.tanh(q + k)
            else:
                made[i, j] = q @ k / (1 if rule.name == "dot" else np.sqrt(WIDTH))
    return made


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_scores_follow_their_formula(rule):
    query, key, _ = vectors()
    found = rule.scores(query, key).numpy()
    for row in range(2):
        for head in range(HEADS):
            expected = by_hand(rule, query[row, head].numpy(), key[row, head].numpy(), head)
            np.testing.assert_allclose(found[row, head], expected, atol=1e-5)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_one_head_alone_has_the_same_scores(rule):
    query, key, _ = vectors()
    whole = rule.scores(query, key)
    torch.testing.assert_close(rule.scores(query[0, 1], key[0, 1], 1), whole[0, 1])
    torch.testing.assert_close(rule.scores(query[:, 1:], key[:, 1:], slice(1, 2)), whole[:, 1:])


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_the_output_is_the_mean_of_the_values_by_the_weights(rule, padded):
    query, key, value = vectors()
    padding = torch.arange(KEYS) < torch.tensor([[KEYS], [KEYS - 2]])
    mask = AttentionMask(padding if padded else None)
    weights = attention_weights(rule.scores(query, key), mask.dense(QUERIES, KEYS))
    torch.testing.assert_close(attend(query, key, value, mask, score=rule), weights @ value)


def test_scaled_dot_attention_stays_the_kernel_s_own():
    query, key, value = vectors()
    found = attend(query, key, value)
    assert torch.equal(found, F.scaled_dot_product_attention(query, key, value))


def test_additive_scores_in_blocks_of_queries_are_the_same(monkeypatch):
    query, key, _ = vectors()
    rule = rules()[-1]
    whole = rule.scores(query, key)
    monkeypatch.setattr(attention, "MOST_SUMS", 1)
    torch.testing.assert_close(rule.scores(query, key), whole)


def test_a_focus_hides_what_is_far_from_its_centre_and_weighs_the_rest_by_a_gaussian():
    centres, reach = torch.tensor([0.4, 3.7, 5.0]), 2
    weights = attention_weights(
        torch.zeros(3, KEYS), LocalWindow(centres, reach).visible(KEYS), LocalWindow(centres, reach)
    )
    for centre, row in zip(centres.tolist(), weights.tolist(), strict=True):
        near = [key for key in range(KEYS) if abs(key - centre) <= reach]
        for key, weight in enumerate(row):
            gaussian = np.exp(-((key - centre) ** 2) / (2 * (reach / 2) ** 2))
            assert weight == pytest.approx(gaussian / len(near) if key in near else 0.0, abs=1e-6)


def test_a_focus_of_some_rows_has_their_centres():
    focus = LocalWindow(torch.tensor([0.4, 3.7, 5.0]), 2)
    assert torch.equal(focus.of(slice(1, 3)).factors(KEYS), focus.factors(KEYS)[1:])
