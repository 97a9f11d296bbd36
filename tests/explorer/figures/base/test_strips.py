from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.base.strips import (
    LARGEST_MATRIX,
    Strip,
    matrices_spec,
    pooled,
    strips,
    strips_spec,
    vectors_spec,
)

RANDOM = np.random.default_rng(0)


def test_strips_hold_the_exact_numbers_and_their_own_scales():
    first, second = RANDOM.normal(size=5), 10 * RANDOM.normal(size=5)
    data = strips_spec([Strip("a", first), Strip("b", second)])["data"]
    np.testing.assert_array_equal(data[0]["z"][0], first.astype(np.float32))
    assert data[1]["zmax"] == np.abs(second).max()
    joint = strips_spec([Strip("a", first), Strip("b", second)], joint=True)["data"]
    assert joint[0]["zmax"] == joint[1]["zmax"] == -joint[0]["zmin"]


def test_names_of_strips_are_escaped_and_zeros_are_drawn():
    figure = strips([Strip("<b>#000001", np.zeros(3), "<i>")])
    assert figure.layout.yaxis.ticktext[0] == "&lt;b&gt;&#35;000001"
    assert figure.layout.annotations[0].text == "&lt;i&gt;"
    assert figure.data[0].zmax > 0


@pytest.mark.parametrize("per", ["dimension", "token"])
def test_vectors_carry_each_number_s_product(per):
    values = RANDOM.normal(size=(4, 6))
    factors = RANDOM.normal(size=(1, 6) if per == "dimension" else (4, 1))
    trace = vectors_spec(values, ("a", "b", "c", "d"), factors, ("k", "q"), 2)["data"][0]
    np.testing.assert_allclose(trace["customdata"][..., 1], values * factors, atol=1e-6)
    np.testing.assert_allclose(trace["customdata"][..., 0], np.broadcast_to(factors, values.shape), atol=1e-6)


def test_equal_tokens_of_vectors_stay_apart():
    layout = vectors_spec(np.eye(2), ("die", "die"), np.ones((1, 2)), ("k", "q"))["layout"]
    assert layout["yaxis"]["ticktext"] == ["die₁", "die₂"]


def test_a_small_matrix_travels_whole_and_a_large_one_is_pooled_and_says_so():
    small, large = RANDOM.normal(size=(256, 32)), RANDOM.normal(size=(512, 64))
    spec = matrices_spec([("W", small), ("U", large)])
    np.testing.assert_array_equal(spec["data"][0]["z"], small.astype(np.float32))
    assert spec["data"][1]["z"].size <= LARGEST_MATRIX
    assert "largest of 2×1 cells" in spec["layout"]["annotations"][1]["text"]
    assert "512 × 64" in spec["layout"]["annotations"][1]["text"]


def test_pooling_keeps_the_number_of_largest_magnitude_with_its_sign():
    values = np.array([[1.0, -3.0], [2.0, 0.5], [-1.0, 4.0], [-5.0, 1.0]])
    shown, down, along = pooled(values, 4)
    assert (down, along) == (2, 1)
    assert shown.tolist() == [[2.0, -3.0], [-5.0, 4.0]]
