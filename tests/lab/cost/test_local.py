"""Local attention in blocks is full attention under the band mask, and costs less."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from lab.cost.local import band, local_attention, measure_attention


@pytest.mark.parametrize(("length", "width"), [(1, 1), (7, 3), (12, 4), (33, 8), (5, 9), (64, 64), (130, 1)])
def test_attention_in_blocks_is_full_attention_under_the_band(length: int, width: int) -> None:
    query, key, value = torch.randn(3, 2, 3, length, 4, generator=torch.Generator().manual_seed(1))
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=band(length, width))
    torch.testing.assert_close(local_attention(query, key, value, width), expected, atol=1e-5, rtol=0)


def test_the_band_is_as_wide_as_said_and_never_looks_ahead() -> None:
    assert band(4, 2).int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]


def test_a_band_as_wide_as_the_text_is_causal_attention() -> None:
    query, key, value = torch.randn(3, 1, 2, 9, 4, generator=torch.Generator().manual_seed(2))
    expected = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(local_attention(query, key, value, 9), expected, atol=1e-5, rtol=0)


def test_a_width_below_one_is_refused() -> None:
    one = torch.zeros(1, 1, 2, 2)
    with pytest.raises(ValueError, match="at least itself"):
        local_attention(one, one, one, 0)


def test_every_way_is_measured_at_every_length() -> None:
    found = measure_attention((8, 16, 32), heads=2, d_head=4, repeats=1, width=4)
    assert (found["lengths"], found["reach"]) == ([8, 16, 32], 4)
    assert set(found["ways"]) == {"whole", "masked", "local"}
    assert all(len(way["milliseconds"]) == 3 and way["time"] for way in found["ways"].values())
