"""Charts of studies: axes that people can read, and the hues of the kinds of attention."""

from __future__ import annotations

import pytest

from explorer.app.server.studies import Chart
from explorer.figures.base import style
from explorer.figures.pages.study import KINDS, draw, number

CURVE = ("line", "layer", "norm")


def curves(caption, columns, series, log=""):
    rows = [(name, *point) for name, points in series.items() for point in points]
    return Chart("curves", caption, "", columns, rows, log)


def test_a_logarithmic_axis_has_powers_of_ten_and_twos_and_fives_where_they_are_few():
    wide = draw(curves("x", CURVE, {"a": [(1, 1e-9), (2, 1e9)]}, "y")).layout.yaxis
    assert len(wide.tickvals) <= 8
    assert "10⁻⁹" in wide.ticktext
    near = draw(curves("x", CURVE, {"a": [(1, 0.2), (2, 3.0)]}, "y")).layout.yaxis
    assert {"0.2", "0.5", "1", "2"} <= set(near.ticktext)


@pytest.mark.parametrize(
    ("places", "ticks"),
    [((1, 2, 3), (1, 2, 3)), ((3, 6, 12), (3, 6, 12)), ((8, 16, 256), None), ((0.5, 1, 2), None)],
)
def test_few_whole_numbers_are_the_ticks_of_their_axis(places, ticks):
    assert draw(curves("x", CURVE, {"a": [(each, 1.0) for each in places]})).layout.xaxis.tickvals == ticks


def test_the_number_of_a_bar_to_the_left_stands_beyond_it():
    chart = Chart("bars", "x", "two bars", ("s", "place", "value"), [("a", "one", -2.0), ("a", "two", 1.0)])
    assert draw(chart).data[1].x == (0, 1)


def test_a_kind_of_attention_has_its_hue_by_the_name_that_studies_use():
    assert set(KINDS) == {"encoder self-attention", "masked decoder self-attention", "cross-attention"}
    drawn = draw(curves("x", CURVE, {"cross-attention": [(1, 1.0)]}))
    assert drawn.data[0].line.color == style.HUES["cross"]


def test_a_series_looks_alike_in_all_charts_of_a_document():
    both = draw(curves("x", CURVE, {"a": [(1, 1.0)], "b": [(1, 1.0)]}), ["a", "b"])
    one = draw(curves("x", CURVE, {"b": [(1, 1.0)]}), ["a", "b"])
    assert one.data[0].line == both.data[1].line != both.data[0].line


def test_numbers_in_coloured_cells_have_the_ink_of_the_theme():
    chart = Chart(
        "grid", "x", "a map", ("layer", "head", "rise"), [("layer 1", "1", -0.5), ("layer 1", "2", 1.0)]
    )
    assert draw(chart, ink="#ffffff").data[0].textfont.color == "#ffffff"


def test_a_number_rounded_to_zero_has_no_sign_and_only_a_zero_is_0():
    assert (number(-0.0001), number(0.0), number(-1.5, 1), number(None)) == ("0.000", "0", "−1.5", "")
    assert (number(0), number(-1200)) == ("0", "−1,200")
