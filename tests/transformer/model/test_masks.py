from __future__ import annotations

import torch

from transformer.attention import AttentionMask, causal_mask, padding_mask, token_mask


def test_a_causal_mask_lets_row_i_see_keys_up_to_i():
    mask = causal_mask(4, 4)
    assert all(bool(mask[row, key]) == (key <= row) for row in range(4) for key in range(4))


def test_a_later_first_query_sees_the_keys_before_it():
    assert torch.equal(causal_mask(2, 5, first_query=3), causal_mask(5, 5)[3:])


def test_padding_is_false_and_tokens_are_true():
    assert padding_mask(torch.tensor([[5, 6, 0], [5, 6, 7]]), 0).tolist() == [
        [True, True, False],
        [True, True, True],
    ]


def test_a_batch_without_padding_needs_no_mask():
    assert padding_mask(torch.tensor([[5, 6]]), 0) is None


def test_the_dense_mask_joins_padding_and_causality():
    padding = torch.tensor([[True, True, False], [True, False, False]])
    dense = AttentionMask(padding, causal=True).dense(3, 3)
    assert dense.shape == (2, 1, 3, 3)
    assert torch.equal(dense, causal_mask(3, 3)[None, None] & padding[:, None, None])


def test_one_new_query_sees_every_cached_key_without_a_mask():
    assert AttentionMask(causal=True, first_query=4).dense(1, 5) is None


def test_without_padding_or_causality_there_is_no_mask():
    assert AttentionMask().dense(3, 5) is None


def test_padding_stands_at_the_end_only():
    ids = torch.tensor([[5, 0, 6, 0, 0], [0, 0, 7, 0, 8]])
    assert token_mask(ids, 0).tolist() == [[True, True, True, False, False], [True] * 5]
    assert padding_mask(ids[1:], 0) is None


def test_a_causal_mask_hides_every_later_key_of_a_long_text():
    assert torch.equal(causal_mask(200, 200), torch.ones(200, 200, dtype=torch.bool).tril())
