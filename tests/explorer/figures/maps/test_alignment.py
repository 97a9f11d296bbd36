from __future__ import annotations

import numpy as np

from explorer.figures.base import style
from explorer.figures.maps.alignment import NAMED, alignment_map, size_for

WEIGHTS = np.array([[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]], dtype=np.float32)


def drawn(**more: object):
    marks = {"found": {(0, 0), (2, 1)}, "sure": {(0, 0)}, "possible": {(0, 0), (1, 1)}, **more}
    return alignment_map(WEIGHTS, ("a", "b", "c"), ("x", "y"), **marks, titles=("rows", "columns"))


def test_links_stand_on_their_cells():
    cells, dots, *_, targets = drawn().data
    assert cells.z[0, 0] > cells.z[0, 1]
    assert list(zip(dots.x.tolist(), dots.y.tolist(), strict=True)) == [(0, 0), (2, 1)]
    assert tuple(targets.customdata[5][:2]) == (2, 1)
    assert targets.text[5] == "y – c (linked by attention)"
    assert targets.text[0] == "x – a (linked by attention, sure link)"
    assert targets.text[4] == "y – b (possible link)"


def test_links_made_by_hand_are_squares_sure_ones_solid():
    shapes = {(shape.x0 + 0.42, shape.y0 + 0.42): shape.line.dash for shape in drawn().layout.shapes}
    assert shapes == {(1, 1): "dot", (0, 0): "solid"}


def test_every_cell_answers_a_click():
    targets = drawn().data[-1]
    assert len(targets.x) == 6
    assert targets.hovertemplate
    assert targets.marker.opacity == 0


def test_colours_and_marks_have_a_legend():
    figure = drawn()
    assert figure.data[0].showscale
    named = [trace.name for trace in figure.data if trace.showlegend is not False]
    assert named == ["link of attention", "sure link made by hand", "possible link (dotted)"]
    bare = drawn(sure=set(), possible=set())
    assert [trace.name for trace in bare.data if trace.showlegend is not False] == ["link of attention"]


def test_every_word_of_a_large_map_has_its_label():
    for words in (3, 41, 100):
        names = [f"word{i}" for i in range(words)]
        size = size_for(words, 520)
        layout = alignment_map(
            np.eye(words), names, names, {(0, 0)}, set(), set(), ("rows", "columns"), size
        ).layout
        assert list(layout.xaxis.ticktext) == names
        assert list(layout.yaxis.ticktext) == names
        assert style.pitch(words, size) >= 9


def test_a_very_large_map_stays_small_and_names_words_by_its_axes():
    words = [f"w{i}" for i in range(NAMED + 36)]
    figure = alignment_map(np.eye(len(words)), words, words, set(), set(), set(), ("r", "c"), 1104)
    assert "%{y} – %{x}" in figure.data[-1].hovertemplate
    assert len(figure.to_json()) < 350_000
