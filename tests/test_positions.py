from __future__ import annotations

import math

import pytest
import torch
from random_models import random_config

from transformer.positions import PositionalEncoding, Sinusoidal, make_positions, sinusoidal_table


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
    assert encoding.bias() is None


def test_an_unknown_encoding_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'circular'.*sinusoidal"):
        make_positions(random_config(positions="circular"))
