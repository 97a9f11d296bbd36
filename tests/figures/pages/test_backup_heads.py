"""The triangle of pairs of heads: each cell belongs to its two heads, and so does its hover text."""

from __future__ import annotations

import numpy as np
import pytest

from figures.pages.backup_heads import Pairs, pairs_map

HEADS = [(0, 0), (0, 1), (1, 0)]
VALUES = np.array([[-0.1, 9, 9], [-0.02, -0.3, 9], [0.05, 0.0, -0.2]])
"""The upper triangle must not be drawn."""


def drawn() -> Pairs:
    return Pairs(HEADS, VALUES, [[f"{i} and {j}" for j in range(i + 1)] for i in range(3)])


def test_only_the_lower_triangle_is_drawn_with_singles_on_the_diagonal():
    cells, _ = pairs_map(drawn()).data
    lower = np.tri(3, dtype=bool)
    assert np.array(cells.z)[lower] == pytest.approx(VALUES[lower])
    assert np.isnan(np.array(cells.z)[~lower]).all()
    assert (cells.zmin, cells.zmax) == pytest.approx((-0.3, 0.3))


def test_a_click_names_both_heads_and_the_hover_text_is_theirs():
    _, targets = pairs_map(drawn()).data
    assert len(targets.x) == 6
    for x, y, place, note in zip(targets.x, targets.y, targets.customdata, targets.hovertext, strict=True):
        assert tuple(place) == (y, x)
        assert note == f"{y} and {x}"


def test_axes_name_heads_from_1_and_lines_part_the_layers():
    figure = pairs_map(drawn())
    assert list(figure.layout.xaxis.ticktext) == ["L1 H1", "L1 H2", "L2 H1"]
    assert list(figure.layout.yaxis.ticktext) == ["L1 H1", "L1 H2", "L2 H1"]
    lines = [each for each in figure.layout.shapes if each.type == "line"]
    assert {(each.x0, each.y0) for each in lines} == {(-0.5, 1.5), (1.5, 1.5)}


def test_many_heads_get_fewer_labels_and_a_scale_without_effects_has_an_end():
    count = 70
    heads = [(at // 10, at % 10) for at in range(count)]
    notes = [["" for _ in range(i + 1)] for i in range(count)]
    figure = pairs_map(Pairs(heads, np.zeros((count, count)), notes))
    assert len(figure.layout.xaxis.tickvals) <= 30
    assert figure.data[0].zmax > 0
