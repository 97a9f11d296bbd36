"""What is said of costs, on measurements made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from lab.cost.table import LAYERS, WRITTEN
from ui.views.training import cost

LENGTHS = [256, 512, 1024, 2048]


def cell(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.1, "high": value + 0.1}


def kinds(**milliseconds: list[float]) -> dict[str, Any]:
    linear = [float(n) for n in LENGTHS]
    return {
        kind: {
            "milliseconds": milliseconds.get(kind, linear),
            "time": cell(1.9 if kind == "attention" else 1.0),
            "memory": cell(2.0 if kind == WRITTEN else 1.0),
        }
        for kind in (*LAYERS, WRITTEN)
    }


def measured(**milliseconds: list[float]) -> dict[str, Any]:
    machine = {"processor": "A chip", "cores": 2, "threads": 1, "torch": "2"}
    decoding = {
        "model": "en-de",
        "lengths": [4, 128],
        "ways": {
            "parallel": {"milliseconds": [1.0, 10.0]},
            "cached": {"milliseconds": [2.0, 45.0]},
            "again": {"milliseconds": [3.0, 400.0]},
        },
    }
    return {
        "machine": machine,
        "date": "2026-11-22",
        "lengths": LENGTHS,
        "fitted_from": 512,
        "repeats": 9,
        "kernel": 3,
        "block": 64,
        "widths": {"64": kinds(**milliseconds), "512": kinds(**milliseconds)},
        "decoding": decoding,
    }


@pytest.mark.parametrize(("d", "width"), [(32, 64), (180, 64), (182, 512), (2048, 512)])
def test_the_nearest_width_is_the_nearest_by_ratio(d: int, width: int):
    assert cost.nearest(measured(), d) == width


def test_exponents_come_with_the_lengths_that_they_were_fitted_to():
    said = cost.growth(measured(), 64)
    assert "from 512 to 2,048 tokens" in said
    assert "**$n^{1.90}$**" in said
    assert "n = 512 to 2,048 (3 lengths)" in cost.basis(measured(), 64)


def test_the_table_has_a_row_for_each_kind_and_one_for_weights_that_are_kept():
    lines = cost.measured_table(measured(), 64).splitlines()
    assert len(lines) == 2 + len(LAYERS) + 1
    assert "$n^{1.90}$ (1.80 to 2.00)" in lines[2]
    assert all(line.count("|") == 7 for line in lines)


def test_what_was_not_fitted_is_said_so():
    assert cost.power(None) == "not fitted"


def test_the_measured_meeting_is_where_the_lines_cross():
    squares = [n * n / 1000 for n in LENGTHS]
    assert "longer from about **1,000 tokens** on" in cost.meets(measured(attention=squares), 64, 64)


@pytest.mark.parametrize(("factor", "when"), [(2.0, "at every length"), (0.5, "at no length")])
def test_lines_that_never_cross_are_said_not_to(factor: float, when: str):
    times = [factor * n for n in LENGTHS]
    assert f"longer {when} from 256 to 2,048 tokens" in cost.meets(measured(attention=times), 64, 64)


def test_the_ways_to_decode_are_compared_at_the_longest_target():
    said = cost.ways(measured())
    assert "At 128 target tokens, the decoder of en\\-de takes 10 ms" in said
    assert "**4.5 times**" in said
    assert "**40 times**" in said
