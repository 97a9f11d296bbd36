from __future__ import annotations

from explorer.figures.base.bars import Bars, paired_bars

SIDES = (
    Bars("before", [0.5, 0.25], ["50 %", "25 %"], ["a", "b"], "#999999"),
    Bars("after", [0.75, 0.0], ["75 %", "0 %"], ["c", "d"], "#333333"),
)


def test_rows_go_down_and_the_chosen_one_is_bold():
    figure = paired_bars(["x", "y"], SIDES, 1, (0, 1), 30)
    assert list(figure.layout.yaxis.ticktext) == ["x", "<b>y</b>"]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert [each.name for each in figure.data] == ["before", "after"]


def test_numbers_have_room_beyond_the_longest_bar():
    assert paired_bars(["x", "y"], SIDES, 0, (0, 1), 30).layout.xaxis.range[1] > 1
    assert paired_bars(["x", "y"], SIDES, 0, (-1, 1), 30).layout.xaxis.range[0] < -1
