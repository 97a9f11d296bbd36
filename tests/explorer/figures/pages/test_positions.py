from __future__ import annotations

import numpy as np

from explorer.figures.pages.positions import (
    LOOKS,
    Interval,
    dots,
    lines,
    looks,
    seen_norms,
    table_map,
    twin_lines,
)

CELLS = {"rotary": Interval(28.0, 27.0, 29.5), "rotary-seed2": Interval(27.5, 26.0, 28.5)}


def test_a_map_draws_every_cell_around_zero_and_counts_as_told():
    table = np.array([[0.5, -2.0, 0.0], [1.0, 0.0, 0.25]])
    drawn = table_map(table, 513, "position", "dimension")
    cells = drawn.data[0]
    np.testing.assert_allclose(cells.z, table)
    assert (cells.zmin, cells.zmax) == (-2.0, 2.0)
    assert (cells.y0, cells.x0) == (513, 1)
    assert tuple(drawn.layout.yaxis.range) == (514.5, 512.5)


def test_columns_that_are_positions_count_on_from_the_first():
    drawn = table_map(np.zeros((3, 2)), 513, "position", "position", left=513)
    assert (drawn.data[0].x0, drawn.data[0].y0) == (513, 513)
    assert tuple(drawn.layout.xaxis.range) == (512.5, 514.5)


def test_a_long_map_has_a_px_for_each_row():
    drawn = table_map(np.zeros((512, 4)), 1, "position", "dimension")
    assert drawn.layout.height - drawn.layout.margin.t - drawn.layout.margin.b >= 512


def test_curves_keep_their_names_and_values():
    drawn = lines([1, 2], {"a<b": [0.0, 1.0], "c": [2.0, 3.0]}, ("x", "y"))
    assert [trace.name for trace in drawn.data] == ["a&lt;b", "c"]
    np.testing.assert_allclose(drawn.data[1].y, [2, 3])
    assert drawn.layout.showlegend
    assert not lines([1], {"a": [0.0]}, ("x", "y")).layout.showlegend


def test_no_two_twins_look_alike_and_none_wears_the_hue_of_a_kind():
    found = looks([*LOOKS, *"abcdefghijkl"])
    assert found | LOOKS == found
    assert len(set(found.values())) == len(found)
    assert not {colour for colour, _ in found.values()} & {"#0072B2", "#009E73", "#D55E00"}
    found = looks(["rotary-seed2", "rotary", "new-seed2", "new"])
    assert found["rotary-seed2"] == found["rotary"]
    assert found["new-seed2"] == found["new"]
    drawn = twin_lines([0, 1], {"alibi": [0, 1]}, ("x", "y"), str.upper)
    assert drawn.data[0].line.dash == LOOKS["alibi"][1]
    assert drawn.data[0].name == "ALIBI"


def test_dots_show_value_and_interval_and_other_seeds_hollow():
    drawn = dots(CELLS, "BLEU", str.upper)
    dot = drawn.data[0]
    assert tuple(dot.x) == (28.0, 27.5)
    assert tuple(dot.error_x.array) == (1.5, 1.0)
    assert tuple(dot.error_x.arrayminus) == (1.0, 1.5)
    assert tuple(drawn.layout.yaxis.ticktext) == ("ROTARY", "ROTARY-SEED2")
    assert dot.marker.color[1] == "rgba(0,0,0,0)"
    assert "28.0" in drawn.data[1].text[0]


def test_norms_stand_beside_the_sentences_that_reach_them():
    drawn = seen_norms({"encoder": [1.0, 2.0, 3.0]}, {"encoder": [10, 4]})
    assert tuple(drawn.data[1].customdata) == (10, 4, 0)
    assert 0 < drawn.data[1].y[2] < 0.5
    assert drawn.layout.yaxis2.type == "log"
