from __future__ import annotations

import math

import pytest
import torch
from random_models import random_config, random_ids, random_model

from transformer.encodings import (
    REGISTRY,
    Learned,
    PositionalEncoding,
    Rotary,
    Sinusoidal,
    make_positions,
    rotary_angles,
    shift_matrix,
    sinusoidal_table,
)
from transformer.hooks import Capture, Hooks
from transformer.model import Transformer
from transformer.trace import trace_of

EACH = pytest.mark.parametrize("name", REGISTRY)


@pytest.mark.parametrize("d_model", [6, 7, 512])
def test_the_table_is_the_paper_s_formula(d_model):
    table = sinusoidal_table(50, d_model)
    for position in (0, 1, 49):
        for dimension in range(d_model):
            angle = position / 10_000 ** (2 * (dimension // 2) / d_model)
            expected = math.cos(angle) if dimension % 2 else math.sin(angle)
            assert table[position, dimension].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("d_model", [32, 36])
def test_in_halves_the_sines_come_before_the_cosines(d_model):
    paper = Sinusoidal(random_config(d_model=d_model)).added(9)
    halves = Sinusoidal(random_config(d_model=d_model, sine_layout="halves")).added(9)
    assert torch.equal(halves[:, : d_model // 2], paper[:, 0::2])
    assert torch.equal(halves[:, d_model // 2 :], paper[:, 1::2])


def test_a_later_start_continues_the_table():
    encoding = Sinusoidal(random_config())
    assert torch.equal(encoding.added(3, first=5), encoding.added(8)[5:])


def test_positions_beyond_the_model_are_refused_with_both_numbers():
    encoding = Sinusoidal(random_config(max_positions=10))
    assert encoding.added(10).shape == (10, 32)
    with pytest.raises(ValueError, match=r"11 tokens.*10 positions"):
        encoding.added(1, first=10)


def test_the_table_is_no_parameter_and_is_not_saved():
    encoding = Sinusoidal(random_config())
    assert not list(encoding.parameters())
    assert not encoding.state_dict()


def test_no_encoding_adds_rotates_and_biases_nothing():
    encoding = make_positions(random_config(positions="none"))
    x = torch.randn(1, 4, 3, 8)
    assert type(encoding) is PositionalEncoding
    assert encoding.added(3) is None
    assert encoding.rotate(x) is x
    assert encoding.bias(0) is None


def test_an_unknown_encoding_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'circular'.*sinusoidal"):
        make_positions(random_config(positions="circular"))


def test_a_shift_of_sinusoids_is_one_linear_map_for_every_position():
    table = sinusoidal_table(4096, 112)
    for offset in (1, 17, 1000, 4095):
        early, late = table[: 4096 - offset], table[offset:]
        map_ = shift_matrix(offset, 112)
        assert (early @ map_.T - late).abs().max() <= 1e-9
        assert (early.float().double() @ map_.T - late.float().double()).abs().max() <= 1e-6


def test_the_map_of_a_shift_is_a_rotation_and_needs_pairs():
    map_ = shift_matrix(5, 32)
    torch.testing.assert_close(map_ @ map_.T, torch.eye(32, dtype=torch.float64))
    torch.testing.assert_close(shift_matrix(2, 32) @ shift_matrix(3, 32), map_)
    with pytest.raises(ValueError, match="d_model is 7"):
        shift_matrix(1, 7)


def test_rotary_positions_turn_each_pair_by_position_times_frequency():
    encoding, x = Rotary(random_config()), torch.randn(1, 1, 6, 8)
    turned = encoding.rotate(x, first=3)
    for row in range(6):
        for pair in range(4):
            angle = (3 + row) * 10_000 ** (-2 * pair / 8)
            even, odd = x[0, 0, row, 2 * pair].item(), x[0, 0, row, 2 * pair + 1].item()
            expected = complex(even, odd) * complex(math.cos(angle), math.sin(angle))
            found = turned[0, 0, row, 2 * pair : 2 * pair + 2].tolist()
            assert found == pytest.approx([expected.real, expected.imag], abs=1e-5)


def test_rotary_scores_depend_on_the_difference_of_positions_only():
    encoding = Rotary(random_config(d_model=128))
    query, key = torch.randn(2, 50, 4, 1, 32, generator=torch.Generator().manual_seed(0))
    size = query.norm(dim=-1) * key.norm(dim=-1)
    for distance in (0, 1, 40, 900):
        here = (encoding.rotate(query, distance) * encoding.rotate(key)).sum(-1)
        for first in (1, 100, 1100):
            there = (encoding.rotate(query, first + distance) * encoding.rotate(key, first)).sum(-1)
            assert ((here - there).abs() / size).max() <= 1e-5


def test_rotary_angles_are_computed_in_double_precision():
    angles = rotary_angles(2048, 28)
    assert angles.dtype == torch.float64
    assert angles[2047, 13].item() == pytest.approx(2047 * 10_000 ** (-26 / 28), rel=1e-14)


def test_rotary_positions_refuse_heads_of_odd_width():
    with pytest.raises(ValueError, match="heads of 7"):
        Rotary(random_config(d_model=28))


def test_a_learned_table_has_one_vector_a_position_and_an_end():
    encoding = Learned(random_config(max_positions=10))
    encoding.initialise()
    assert torch.equal(encoding.added(3, first=5), encoding.table[5:8])
    with pytest.raises(ValueError, match=r"11 tokens.*10 positions"):
        encoding.added(11)


def test_t5_shares_one_table_in_a_stack_and_shaw_has_one_for_each_layer_and_head():
    t5, shaw = (random_model(positions=name).encoder.positions for name in ("t5", "shaw"))
    assert torch.equal(t5.bias(0).table, t5.bias(1).table)
    assert shaw.vectors.shape == (2, 4, 33, 8)
    assert torch.equal(shaw.bias(1).table, shaw.vectors[1])


def test_t5_knows_both_directions_in_the_encoder_and_one_in_the_decoder():
    model = random_model(positions="t5")
    encoder, decoder = model.encoder.positions.bias(0).table, model.decoder.positions.bias(0).table
    assert not torch.equal(encoder[:, 127], encoder[:, 129])
    assert len(encoder[0].unique()) == 32 - 1
    assert len(decoder[0].unique()) == 32
    assert (decoder[:, 129:] == decoder[:, 128:129]).all()


@EACH
def test_all_encodings_start_from_the_same_shared_weights_and_random_stream(name):
    def start(positions):
        torch.manual_seed(5)
        model = Transformer(random_config(positions=positions))
        own = {"encoder.positions", "decoder.positions"}
        shared = {key: w for key, w in model.state_dict().items() if key.rsplit(".", 1)[0] not in own}
        return shared, torch.rand(3)

    (shared, stream), (expected, expected_stream) = start(name), start("none")
    assert shared.keys() == expected.keys()
    assert all(torch.equal(shared[key], expected[key]) for key in expected)
    assert torch.equal(stream, expected_stream)


@pytest.mark.parametrize("name", ["learned", "shaw", "t5"])
def test_learned_encodings_of_the_two_stacks_start_apart_and_follow_the_seed(name):
    def tables(seed):
        torch.manual_seed(seed)
        model = Transformer(random_config(positions=name))
        return [next(stack.positions.parameters()) for stack in (model.encoder, model.decoder)]

    (encoder, decoder), (again, _), (other, _) = tables(1), tables(1), tables(2)
    assert not torch.equal(encoder.flatten()[:9], decoder.flatten()[:9])
    assert torch.equal(encoder, again)
    assert not torch.equal(encoder, other)


def memory_of(name, ids):
    return random_model(positions=name).encode(ids)[0]


@EACH
def test_only_an_encoder_without_encoding_gives_permuted_words_permuted_vectors(name):
    ids, order = random_ids(1, 7), torch.tensor([3, 0, 6, 1, 5, 2, 4])
    plain, permuted = memory_of(name, ids), memory_of(name, ids[:, order])
    assert torch.allclose(permuted, plain[order], atol=1e-4) == (name == "none")


@pytest.mark.parametrize("name", ["none", "sinusoidal", "learned", "shaw", "t5", "rotary", "alibi"])
def test_only_alibi_cannot_tell_a_sentence_from_its_mirror_image(name):
    """With the whole row reversed, ``</s>`` too, all distances stay; if ``</s>`` stays, they do not."""
    ids = torch.cat([random_ids(1, 6), torch.tensor([[2]])], dim=1)
    plain, mirrored = memory_of(name, ids), memory_of(name, ids.flip(1))
    assert torch.allclose(mirrored.flip(0), plain, atol=1e-4) == (name in ("alibi", "none"))
    end_last = torch.tensor([5, 4, 3, 2, 1, 0, 6])
    assert torch.allclose(memory_of(name, ids[:, end_last]), plain[end_last], atol=1e-4) == (name == "none")


@pytest.mark.parametrize("name", ["shaw", "t5", "rotary", "alibi", "none"])
def test_scores_of_relative_encodings_stay_where_the_sentence_moves(name):
    """The same words later in a row have the same scores among each other in the first layer."""

    def scores(ids):
        model, hooks = random_model(positions=name), Hooks(Capture().parts)
        model.encode(ids, hooks=hooks)
        return trace_of(hooks, model.config, lambda *_: None).scores("encoder", 0)

    words = random_ids(1, 5)
    moved = scores(torch.cat([random_ids(1, 4, seed=9), words], dim=1))[:, 4:, 4:]
    assert moved == pytest.approx(scores(words), rel=1e-4, abs=1e-4)
