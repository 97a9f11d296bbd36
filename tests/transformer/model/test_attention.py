"""Attention by itself: scores, masks, the fused kernel and caches, against formulas and torch."""

import numpy as np
import pytest
import torch
from random_models import random_config
from torch import Tensor
from torch.nn import functional as F

from transformer import attention
from transformer.attention import (
    SCALED_DOT,
    AttentionMask,
    Cache,
    LayerCache,
    ScoreRule,
    attend,
    attention_weights,
    causal_mask,
    padding_mask,
)
from transformer.encodings import BiasRule
from transformer.hooks import Hooks

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 8
NEAR = {"atol": 1e-6, "rtol": 0}


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def vectors(queries: int = QUERIES) -> list[Tensor]:
    """Query, key and value."""
    return [normal(BATCH, HEADS, n, WIDTH, seed=i) for i, n in enumerate((queries, KEYS, KEYS))]


RULES = [SCALED_DOT, ScoreRule("dot"), ScoreRule("additive", normal(HEADS, WIDTH))]
PADDING = torch.tensor([[True] * KEYS, [True] * (KEYS - 2) + [False] * 2])
MASKS = {
    "no mask": (AttentionMask(), QUERIES),
    "padding": (AttentionMask(PADDING), QUERIES),
    "causal": (AttentionMask(causal=True), KEYS),
    "causal and padding": (AttentionMask(PADDING, causal=True), KEYS),
    "cached rows": (AttentionMask(causal=True, first_query=KEYS - 2), 2),
    "one cached row": (AttentionMask(causal=True, first_query=KEYS - 1), 1),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_scores_follow_their_formula_cell_by_cell(rule, monkeypatch):
    query, key, _ = vectors()
    scores = rule.scores(query, key)
    for row, head, i, j in np.ndindex(BATCH, HEADS, QUERIES, KEYS):
        q = query[row, head, i].double()
        k = key[row, head, j].double()
        products = float(q @ k) / (1 if rule.name == "dot" else WIDTH**0.5)
        by_hand = (
            products
            if rule.vector is None
            else float(rule.vector[head].double() @ torch.tanh(q + k))
        )
        assert float(scores[row, head, i, j]) == pytest.approx(by_hand, abs=1e-5)
    torch.testing.assert_close(rule.scores(query[0, 1], key[0, 1], 1), scores[0, 1])
    torch.testing.assert_close(rule.scores(query[:, 1:], key[:, 1:], slice(1, 3)), scores[:, 1:])
    monkeypatch.setattr(attention, "MOST_SUMS", 1)  # in blocks of queries
    torch.testing.assert_close(rule.scores(query, key), scores)


@pytest.mark.parametrize(("mask", "queries"), MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("biased", [False, True])
def test_fused_attention_equals_explicit_attention_and_torch_s(mask, queries, biased):
    query, key, value = vectors(queries)
    rule = BiasRule("alibi", normal(HEADS).abs())
    bias = rule.matrix(query, KEYS, mask.first_query) if biased else None
    hooks = Hooks({"scores", "weights"})
    explicit = attend(query, key, value, mask, bias, hooks=hooks, name="here")
    torch.testing.assert_close(attend(query, key, value, mask, bias), explicit, **NEAR)
    torch.testing.assert_close(hooks.values("here.weights") @ value, explicit)
    dense = mask.dense(queries, KEYS)
    if not biased:
        for score in RULES:
            weights = attention_weights(score.scores(query, key), dense)
            torch.testing.assert_close(
                attend(query, key, value, mask, score=score), weights @ value
            )
        reference = F.scaled_dot_product_attention(query, key, value, attn_mask=dense)
        torch.testing.assert_close(explicit, reference, **NEAR)


def test_a_row_that_sees_no_key_is_zeros():
    query, key, value = vectors()
    mask = AttentionMask(torch.stack([PADDING[0], ~PADDING[0]]))
    weights = attention_weights(SCALED_DOT.scores(query, key), mask.dense(QUERIES, KEYS))
    assert weights[1].eq(0.0).all()
    assert attend(query, key, value, mask)[1].eq(0.0).all()


@pytest.mark.parametrize(
    ("queries", "first", "keys"),
    [(1, 0, 1), (2, 0, 2), (1, 0, 2), (1, 1, 2), (2, 0, 3), (2, 1, 3), (3, 0, 3)],
)
def test_a_causal_mask_hides_every_later_key_of_even_the_shortest_texts(queries, first, keys):
    """None if nothing is hidden, which is so where the first query sees all keys."""
    expected = [[key <= first + query for key in range(keys)] for query in range(queries)]
    dense = AttentionMask(causal=True, first_query=first).dense(queries, keys)
    assert (dense is None) == (first + 1 >= keys)
    assert dense is None or dense[0, 0].tolist() == expected


def test_masks_hide_padding_at_the_end_and_later_keys():
    assert torch.equal(causal_mask(200, 200), torch.ones(200, 200, dtype=torch.bool).tril())
    assert torch.equal(causal_mask(2, 5, first_query=3), causal_mask(5, 5)[3:])
    hidden = padding_mask(torch.tensor([[5, 6, 0], [5, 6, 7]]), 0)
    assert hidden.tolist() == [[True, True, False], [True] * 3]
    assert padding_mask(torch.tensor([[5, 6]]), 0) is None
    inside = torch.tensor([[5, 0, 6, 0, 0], [0, 0, 7, 0, 8]])
    assert padding_mask(inside, 0).tolist() == [[True, True, True, False, False], [True] * 5]
    assert padding_mask(inside[1:], 0) is None
    dense = AttentionMask(hidden, causal=True).dense(3, 3)
    assert torch.equal(dense, causal_mask(3, 3)[None, None] & hidden[:, None, None])
    assert AttentionMask(causal=True, first_query=4).dense(1, 5) is None
    assert AttentionMask().dense(3, 5) is None


def keys_and_values(length: int, batch: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    return normal(batch, 3, length, 4, seed=seed), normal(batch, 3, length, 4, seed=seed + 100)


@pytest.mark.parametrize("lengths", [[1] * 70, [5, 60, 1, 200]])
def test_a_growing_cache_holds_all_that_was_appended(lengths):
    cache = LayerCache(grows=True)
    parts = [keys_and_values(n, seed=i) for i, n in enumerate(lengths)]
    for part in parts:
        whole = cache.update(*part)
    for place in range(2):
        assert torch.equal(whole[place], torch.cat([part[place] for part in parts], 2))
    assert cache.length == sum(lengths)
    rows = torch.tensor([1, 1, 0])
    more = keys_and_values(1, batch=3, seed=999)
    cache.select(rows)  # each goes on from its own past
    grown = cache.update(*more)
    for place in range(2):
        assert torch.equal(grown[place], torch.cat([whole[place][rows], more[place]], 2))


@pytest.mark.parametrize("batch", [1, 2])
def test_a_fixed_cache_is_filled_once_and_selects_rows(batch):
    cache = LayerCache(grows=False)
    pair = keys_and_values(4, batch=batch)
    assert cache.fixed is None
    assert all(map(torch.equal, cache.update(*pair), pair))
    assert all(map(torch.equal, cache.fixed, pair))
    rows = torch.tensor([batch - 1, 0, 0])
    cache.select(rows)
    assert all(
        torch.equal(now, before[rows]) for now, before in zip(cache.fixed, pair, strict=True)
    )
    whole = Cache(random_config())
    first = whole.cross[0].update(*keys_and_values(4))
    whole.select(torch.tensor([1, 0]), same_source=True)  # leaves cross-attention as it is
    assert all(map(torch.equal, whole.cross[0].fixed, first))
