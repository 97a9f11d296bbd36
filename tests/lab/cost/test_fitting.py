"""Exponents and their intervals against independent least squares, and where two costs meet."""

from __future__ import annotations

import numpy as np
import pytest

from lab.cost.fitting import exponent, meeting

LENGTHS = (512, 724, 1024, 1448, 2048, 2896, 4096)


@pytest.mark.parametrize("power", [0.0, 1.0, 1.7, 2.0])
def test_a_power_of_n_has_its_exponent_and_no_width(power: float) -> None:
    found = exponent(LENGTHS, [3e-5 * n**power for n in LENGTHS])
    assert found is not None
    assert found["value"] == pytest.approx(power, abs=1e-4)
    assert found["high"] - found["low"] == pytest.approx(0, abs=1e-4)


def test_the_interval_is_that_of_the_slope_of_least_squares() -> None:
    noise = np.exp(np.random.default_rng(1).normal(0, 0.1, len(LENGTHS)))
    costs = [float(n**1.5 * factor) for n, factor in zip(LENGTHS, noise, strict=True)]
    (slope, _), covariance = np.polyfit(np.log(LENGTHS), np.log(costs), 1, cov=True)
    found = exponent(LENGTHS, costs)
    assert found is not None
    assert found["value"] == pytest.approx(slope, abs=1e-4)
    assert found["high"] - found["value"] == pytest.approx(2.571 * np.sqrt(covariance[0, 0]), abs=1e-4)


def test_the_interval_holds_the_truth_in_about_95_of_100_cases() -> None:
    draw, inside = np.random.default_rng(2), 0
    for _ in range(400):
        noise = np.exp(draw.normal(0, 0.2, len(LENGTHS)))
        found = exponent(LENGTHS, [float(n * factor) for n, factor in zip(LENGTHS, noise, strict=True)])
        assert found is not None
        inside += found["low"] <= 1 <= found["high"]
    assert 0.92 <= inside / 400 <= 0.98


def test_too_few_lengths_or_no_cost_have_no_exponent() -> None:
    assert exponent((1, 2), (1, 2)) is None
    assert exponent((1, 2, 4), (0, 2, 4)) is None


def test_two_costs_meet_where_their_powers_do() -> None:
    assert meeting(LENGTHS, [n * n for n in LENGTHS], [1500 * n for n in LENGTHS]) == pytest.approx(1500)
    assert meeting(LENGTHS, [n * n for n in LENGTHS], list(LENGTHS)) is None
    assert meeting(LENGTHS, list(LENGTHS), [n * n for n in LENGTHS]) is None
