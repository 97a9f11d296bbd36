from __future__ import annotations

import math

from figures.pages.what_if import Moved, delta_bars

STEPS = [Moved("▁a", -2.5, "one"), Moved("b", 0.25, "two"), Moved("</s>", math.nan, "<three>")]


def test_bars_run_from_the_top_and_an_unknown_difference_is_none():
    figure = delta_bars(STEPS, None)
    assert list(figure.data[0].x) == [-2.5, 0.25, 0.0]
    assert figure.layout.yaxis.range == (2.5, -0.5)
    assert list(figure.layout.yaxis.ticktext) == ["a", "b", "&lt;/s&gt;"]
    assert figure.data[0].hovertext[2] == "&lt;three&gt;"
    assert figure.layout.xaxis.range[1] >= 2.5


def test_a_line_stands_under_the_step_at_which_the_runs_part():
    assert [shape.y0 for shape in delta_bars(STEPS, 1).layout.shapes] == [1.5]
    assert not delta_bars(STEPS, 3).layout.shapes
