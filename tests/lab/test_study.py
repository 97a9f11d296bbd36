"""Charts of studies: their alternative texts tell their values."""

from __future__ import annotations

from lab.study import chart, curves, gap


def test_a_curve_tells_both_ends_and_a_single_value_once():
    found = curves(
        "Loss", ("run", "step", "nats"), {"a": [(1, 7.444), (2, 3.0), (3, -0.5)], "b": [(1, 1234.5)]}
    )
    assert found.alt == "Loss: a: 7.44 to −0.5; b: 1,234."
    assert found.rows[0] == ("a", 1, 7.444)


def test_dots_tell_all_values_by_series_if_there_are_several():
    rows = [("x", "one", 1.0), ("x", "two", None)]
    assert chart("dots", "Gain", ("s", "place", "v"), rows).alt == "Gain: one: 1."
    rows += [("y", "one", 2.0)]
    assert chart("dots", "Gain", ("s", "place", "v"), rows).alt == "Gain: x (one: 1), y (one: 2)."


def test_a_map_tells_its_ends_and_where_they_are():
    rows = [("layer 1", "1", 0.5), ("layer 2", "1", -1.0), ("layer 2", "2", 0.0)]
    assert chart("grid", "Rise", ("layer", "head", "v"), rows).alt == (
        "Rise: from −1 (layer 2, 1) to 0.5 (layer 1, 1)."
    )


def test_a_difference_of_nothing_has_no_sign():
    assert gap({"value": 0.04, "low": -0.04, "high": 0.3}) == "0.0 (0.0 to +0.3)"
