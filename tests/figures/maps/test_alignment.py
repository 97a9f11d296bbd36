from __future__ import annotations

import numpy as np

from figures.maps.alignment import alignment_map

HOSTILE = ("</s>", "<a href='x'>", "#000001", "&lt;", "%{x}", "$x$", "", "▁")
WEIGHTS = np.array([[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]], dtype=np.float32)


def drawn(**more: object):
    marks = {"found": {(0, 0), (2, 1)}, "sure": {(0, 0)}, "possible": {(0, 0), (1, 1)}, **more}
    return alignment_map(WEIGHTS, ("a", "b", "c"), ("x", "y"), **marks, titles=("rows", "columns"))


def test_links_stand_on_their_cells():
    cells, dots, targets = drawn().data
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


def test_hostile_words_are_escaped():
    size = len(HOSTILE)
    figure = alignment_map(np.eye(size), HOSTILE, HOSTILE, {(0, 0)}, set(), set(), ("rows", "columns"))
    written = str([figure.data[-1].text, figure.layout.xaxis.ticktext])
    assert "<a" not in written
    assert "#000001" not in written
