"""The measured layers compute what they are said to compute."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from lab.cost import decoding
from lab.cost.layers import HEADS, Restricted, TextbookAttention, layers
from lab.cost.measuring import least_and_median, measure_layers, peak_bytes
from lab.cost.table import BLOCK, LAYERS, WRITTEN
from transformer.runs.translator import Translator

WIDTH = 16


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(1, 2 * BLOCK + 5, WIDTH, generator=torch.Generator().manual_seed(1))


def test_every_kind_of_table_1_is_measured_and_keeps_the_shape(x: torch.Tensor) -> None:
    made = layers(WIDTH)
    assert set(made) == {*LAYERS, WRITTEN}
    for layer in made.values():
        assert layer(x).shape == x.shape


def test_written_out_attention_is_fused_attention(x: torch.Tensor) -> None:
    written = TextbookAttention(WIDTH)
    torch.testing.assert_close(written(x), written.attention(x), atol=1e-5, rtol=1e-4)


def test_restricted_attention_is_whole_attention_under_the_mask_of_its_blocks(x: torch.Tensor) -> None:
    layer = Restricted(WIDTH)
    own = layer.attention
    query, key, value = (
        each(x).view(1, x.shape[1], HEADS, -1).transpose(1, 2)
        for each in (own.q_proj, own.k_proj, own.v_proj)
    )
    block = torch.arange(x.shape[1]) // BLOCK
    near = (block[:, None] - block).abs() <= 1
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=near)
    expected = own.out_proj(output.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(x), expected, atol=1e-5, rtol=1e-4)


def test_written_out_weights_take_memory_that_grows_with_the_square_and_fused_ones_do_not() -> None:
    ((width, found),) = measure_layers((WIDTH,), (256, 512, 1024), 1)
    assert width == WIDTH
    memory = {kind: found[kind]["megabytes"][-1] / found[kind]["megabytes"][-2] for kind in found}
    assert 3.5 < memory[WRITTEN] < 4.1
    assert 1.8 < memory["attention"] < 2.2
    assert 1.8 < memory["recurrent"] < 2.2


def test_memory_is_the_most_that_is_held_at_once() -> None:
    def work() -> torch.Tensor:
        kept = torch.ones(1_000_000)
        for _ in range(3):
            kept = kept + 1  # the sum lies beside the old one, which is then freed
        return kept

    assert 8e6 <= peak_bytes(work) < 9e6


def test_times_are_processor_time_of_work_that_takes_turns() -> None:
    order: list[str] = []
    found = least_and_median({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2)
    assert order == ["a", "b"] * 3
    for least, middle in found.values():
        assert 0 <= least <= middle


def test_all_ways_to_compute_a_text_predict_the_same_tokens(translator: Translator) -> None:
    model = translator.model
    ids = torch.tensor([[1, 5, 6, 7, 8, 9, 10]])
    with torch.inference_mode():
        ways = decoding.ways_of(model, source=4)
        expected = ways.parallel(ids)
        assert expected.shape == (7,)
        for way in (ways.cached, ways.again):
            assert torch.equal(way(ids), expected)


def test_lengths_beyond_the_model_are_left_out(translator: Translator) -> None:
    lengths = 2, 4, 8, translator.config.max_positions + 1
    found = decoding.measure_decoding(translator.model, lengths, 1)
    assert found["lengths"] == [2, 4, 8]
    assert set(found["ways"]) == {"parallel", "cached", "again"}
    assert all(len(way["medians"]) == 3 and way["time"] for way in found["ways"].values())
