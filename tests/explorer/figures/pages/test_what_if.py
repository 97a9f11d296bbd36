from __future__ import annotations

import math

import numpy as np

from explorer.figures.base import style
from explorer.figures.maps.difference import difference_map
from explorer.figures.pages.what_if import StepMove, clickable, control_strip, delta_bars

STEPS = [StepMove("▁a", -2.5, "one"), StepMove("b", 0.25, "two"), StepMove("</s>", math.nan, "<three>")]


def test_bars_run_from_the_top_and_an_unknown_difference_is_none():
    figure = delta_bars(STEPS, None)
    assert list(figure.data[0].x) == [-2.5, 0.25, 0.0]
    assert list(figure.data[0].text) == ["−2.50", "+0.25", "not known"]
    assert figure.layout.yaxis.range == (2.5, -0.5)
    assert list(figure.layout.yaxis.ticktext) == ["a", "‿b", "&lt;/s&gt;"]
    assert figure.data[0].hovertext[2] == "&lt;three&gt;"
    assert figure.layout.xaxis.range[1] >= 2.5


def test_a_line_stands_under_the_step_at_which_the_runs_part():
    assert [shape.y0 for shape in delta_bars(STEPS, 1).layout.shapes] == [1.5]
    assert not delta_bars(STEPS, 3).layout.shapes


def test_the_bar_of_a_change_stands_among_dots_for_other_heads():
    figure = control_strip(-1.5, [0.25, -2.0], ["<own>", "one", "two"])
    bar, dots = figure.data
    assert (list(bar.x), bar.marker.color) == ([-1.5], style.NEGATIVE)
    assert list(dots.x) == [0.25, -2.0]
    assert [*bar.hovertext, *dots.hovertext] == ["&lt;own&gt;", "one", "two"]
    assert figure.layout.xaxis.range[0] < -2.0


def test_a_click_on_a_cell_gives_its_place_and_the_chosen_cell_is_framed():
    first, second = np.array([[0.25, 0.75], [1.0, 0.0]]), np.array([[0.5, 0.5], [1.0, 0.0]])
    compared, distances = np.ones((2, 2), bool), np.array([0.25, 0.0])
    rows, columns = ["a", "b"], ["<c>", "d"]
    figure = difference_map(first, second, compared, rows, columns, distances, 0.3, ("q", "k"))
    places = [[(4, 6), (4, 7)], [(5, 6), (5, 7)]]
    targets = clickable(figure, places, (4, 7), 20).data[-1]
    found = {
        (x, y): tuple(place) for x, y, place in zip(targets.x, targets.y, targets.customdata, strict=True)
    }
    assert found == {(0, 0): (4, 6), (1, 0): (4, 7), (0, 1): (5, 6), (1, 1): (5, 7)}
    assert targets.hovertext[0] == ("a, key &lt;c&gt;<br>changed 0.250 · as it is 0.500 · difference −0.250")
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.y0) == (0.5, -0.5)
