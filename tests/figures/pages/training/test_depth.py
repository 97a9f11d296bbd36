"""Lines through layers: the axis holds every value that rounding did not decide."""

from __future__ import annotations

import math

import pytest

from figures.pages.training.depth import FLOOR, Layers, by_layer, ends


@pytest.mark.parametrize(
    "values", [[1.0], [0.5, 2.0], [1e-9, 1e7], [3.0, 3.0, 3.0]], ids=["one", "near", "far", "equal"]
)
def test_the_axis_holds_all_values_and_at_least_a_decade(values: list[float]):
    low, high = ends(values)
    assert low < math.log10(min(values)) <= math.log10(max(values)) < high
    assert high - low >= 1


def test_the_axis_ends_where_rounding_decides():
    for values in ([1.0, 1e-40], [1.0, 0.0]):
        assert ends(values)[0] == math.log10(FLOOR)
    assert ends([0.0])[0] == math.log10(FLOOR)


def test_a_layer_without_gradient_leaves_a_gap_and_names_are_escaped():
    figure = by_layer([Layers("<b>", [1.0, 0.0], [2.0, 3.0], "red")], "norm")
    assert figure.data[0].y == (1.0, None)
    assert "<" not in figure.data[0].name
    assert [trace.showlegend for trace in figure.data] == [True, False]


def test_an_axis_of_few_decades_writes_every_tick_in_full():
    axis = by_layer([Layers("a", [0.17, 0.4], [1.5, 2.6], "#123456")], "norm").layout.yaxis
    assert axis.ticktext == ("0.1", "0.2", "0.5", "1", "2", "5")
    assert axis.tickvals == pytest.approx((0.1, 0.2, 0.5, 1, 2, 5))
    assert by_layer([Layers("a", [1e-6], [1.0], "#123456")], "norm").layout.yaxis.ticktext is None
