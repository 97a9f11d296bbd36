from __future__ import annotations

import pytest
import torch
from random_models import random_config
from torch import nn
from torch.nn import functional as F
from torch_reference import copy_attention

from transformer.attention import SCALED_DOT, AttentionMask, MultiHeadAttention, attend, attention_weights
from transformer.config import AttentionKind
from transformer.encodings import BiasRule
from transformer.hooks import Hooks

BATCH, HEADS, QUERIES, KEYS, D_HEAD = 2, 3, 5, 7, 8


def tensors(queries=QUERIES, keys=KEYS):
    generator = torch.Generator().manual_seed(1)
    shapes = [(BATCH, HEADS, n, D_HEAD) for n in (queries, keys, keys)]
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


PADDING = torch.tensor([[True] * KEYS, [True] * (KEYS - 2) + [False] * 2])
MASKS = {
    "no mask": (AttentionMask(), QUERIES),
    "padding": (AttentionMask(PADDING), QUERIES),
    "causal": (AttentionMask(causal=True), KEYS),
    "causal and padding": (AttentionMask(PADDING, causal=True), KEYS),
    "cached rows": (AttentionMask(causal=True, first_query=KEYS - 2), 2),
    "one cached row": (AttentionMask(causal=True, first_query=KEYS - 1), 1),
}


@pytest.mark.parametrize(("mask", "queries"), MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("biased", [False, True])
def test_fused_attention_equals_explicit_attention(mask, queries, biased):
    query, key, value = tensors(queries)
    rule = BiasRule("alibi", torch.rand(HEADS, generator=torch.Generator().manual_seed(2)))
    bias = rule.matrix(query, KEYS, mask.first_query) if biased else None
    hooks = Hooks({"scores", "weights"})
    explicit = attend(query, key, value, mask, bias, hooks=hooks, name="here")
    torch.testing.assert_close(attend(query, key, value, mask, bias), explicit, atol=1e-6, rtol=0)
    torch.testing.assert_close(hooks.values("here.weights") @ value, explicit)


@pytest.mark.parametrize(("mask", "queries"), MASKS.values(), ids=MASKS)
def test_explicit_attention_equals_torch_s(mask, queries):
    query, key, value = tensors(queries)
    dense = mask.dense(queries, KEYS)
    weights = attention_weights(SCALED_DOT.scores(query, key), dense)
    reference = F.scaled_dot_product_attention(query, key, value, attn_mask=dense)
    torch.testing.assert_close(weights @ value, reference, atol=1e-6, rtol=0)


def test_rows_of_weights_sum_to_one_and_masked_weights_are_exactly_zero():
    query, key, _ = tensors()
    dense = AttentionMask(PADDING).dense(QUERIES, KEYS)
    weights = attention_weights(SCALED_DOT.scores(query, key), dense)
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, QUERIES), atol=1e-6, rtol=0)
    assert weights[~dense.expand_as(weights)].eq(0.0).all()
    assert weights[dense.expand_as(weights)].gt(0.0).all()


def test_a_row_that_sees_no_key_gives_zeros_fused_and_explicit():
    query, key, value = tensors()
    nothing = torch.stack([torch.ones(KEYS, dtype=torch.bool), torch.zeros(KEYS, dtype=torch.bool)])
    mask = AttentionMask(nothing)
    weights = attention_weights(SCALED_DOT.scores(query, key), mask.dense(QUERIES, KEYS))
    assert weights[1].eq(0.0).all()
    assert attend(query, key, value, mask)[1].eq(0.0).all()


def test_scores_are_divided_by_the_root_of_the_head_s_width():
    query, key, _ = tensors()
    by_hand = sum(query[0, 1, 2, d] * key[0, 1, 3, d] for d in range(D_HEAD)) / D_HEAD**0.5
    torch.testing.assert_close(SCALED_DOT.scores(query, key)[0, 1, 2, 3], by_hand)


def copied(config):
    """Our attention and torch's, with the same random weights."""
    torch.manual_seed(3)
    own = MultiHeadAttention(config, AttentionKind.CROSS, 0)
    reference = nn.MultiheadAttention(config.d_model, config.n_heads, batch_first=True)
    with torch.no_grad():
        for parameter in own.parameters():
            parameter.normal_(std=0.3)
        copy_attention(own, reference)
    return own.eval(), reference.eval()


@torch.inference_mode()
def test_cross_attention_equals_nn_multihead_attention():
    own, reference = copied(random_config())
    x, memory = torch.randn(BATCH, QUERIES, 32), torch.randn(BATCH, KEYS, 32)
    expected, _ = reference(x, memory, memory, key_padding_mask=~PADDING, need_weights=False)
    torch.testing.assert_close(own(x, memory, mask=AttentionMask(PADDING)), expected, atol=2e-5, rtol=0)


@torch.inference_mode()
def test_causal_self_attention_equals_nn_multihead_attention():
    own, reference = copied(random_config())
    x = torch.randn(BATCH, QUERIES, 32)
    future = nn.Transformer.generate_square_subsequent_mask(QUERIES)
    expected, _ = reference(x, x, x, attn_mask=future, is_causal=True, need_weights=False)
    torch.testing.assert_close(own(x, mask=AttentionMask(causal=True)), expected, atol=2e-5, rtol=0)
