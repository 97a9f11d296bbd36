from __future__ import annotations

import numpy as np

from explorer.figures.base import style
from explorer.figures.pages.heads import Cell, Marks, distance_bars, head_grid, plane

CELLS = [
    [Cell(0.1, "10 %", "prev", "layer 1, head 1\n<b>"), Cell(0.5, "50 %", "–", "layer 1, head 2")],
    [Cell(None, "–", "sink", "layer 2, head 1"), Cell(0.3, "30 %", "next", "layer 2, head 2")],
    [Cell(0.2, "20 %", "–", "layer 3, head 1"), Cell(0.4, "40 %", "–", "layer 3, head 2")],
]


def test_rows_are_layers_and_columns_heads() -> None:
    figure = head_grid(CELLS, "encoder", (1, 1))
    cells, targets = figure.data
    assert np.array(cells.z)[0].tolist() == [np.float32(0.1), np.float32(0.5)]
    assert np.isnan(cells.z[1][0])
    assert (cells.zmin, cells.zmax) == (np.float32(0.1), np.float32(0.5))
    place = list(zip(targets.y, targets.x, strict=True))
    assert [tuple(each) for each in targets.customdata] == place
    assert targets.hovertext[place.index((1, 1))] == "layer 2, head 2"
    texts = {(each.y, each.x): each.text for each in figure.layout.annotations}
    assert texts[0, 1] == "50 %<br>–"
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]


def test_a_colour_bar_names_the_smallest_and_the_largest_value() -> None:
    cells = head_grid(CELLS, "encoder", (1, 1)).data[0]
    assert cells.showscale
    assert tuple(cells.colorbar.ticktext) == ("10 %", "50 %")
    assert tuple(cells.colorbar.tickvals) == (cells.zmin, cells.zmax)
    alike = [[Cell(0.5, "50 %", "", ""), Cell(0.5, "50 %", "", "")]]
    assert head_grid(CELLS, "encoder", (1, 1), falling=True).data[0].reversescale
    assert not head_grid(alike, "encoder", (0, 0)).data[0].showscale


def test_the_chosen_head_is_framed_in_its_hue() -> None:
    (frame,) = head_grid(CELLS, "cross", (2, 0)).layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (-0.5, 0.5, 1.5, 2.5)
    assert frame.line.color == style.HUES["cross"]


def test_markup_in_a_note_stays_text() -> None:
    assert head_grid(CELLS, "encoder", (0, 0)).data[1].hovertext[0] == "layer 1, head 1<br>&lt;b&gt;"


def test_one_value_for_all_heads_still_has_a_scale() -> None:
    cells = head_grid([[Cell(0.2, "20 %", "–", "")] * 2], "decoder", (0, 0)).data[0]
    assert cells.zmin < cells.zmax


def test_many_heads_leave_out_the_roles() -> None:
    figure = head_grid([[Cell(0.2, "20 %", "prev", "")] * 16], "decoder", (0, 0))
    assert {each.text for each in figure.layout.annotations} == {"20 %"}


def test_bars_stand_at_their_distance_beside_even_weights() -> None:
    shares, chance = np.arange(5) / 10, np.full(5, 0.2)
    bars, even = distance_bars(shares, chance, "cross").data
    assert list(bars.x) == [-2, -1, 0, 1, 2]
    assert np.allclose(bars.y, shares)
    assert np.allclose(even.y, chance)


def test_points_keep_their_place_their_shade_and_what_a_click_gives() -> None:
    x, y, shade = np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.array([0.1, 0.9])
    marks = Marks("", x, y, style.HUES["cross"], ["<b>", "b"], [(0, 0), (0, 1)], values=shade)
    figure = plane([marks], ("a", "b"), (2.0, 5.0), [(1.0, 3.0, "<w>")], ("10 %", "90 %"))
    points, ring = figure.data
    assert np.allclose([points.x, points.y, points.marker.color], [x, y, shade])
    assert tuple(points.marker.colorbar.ticktext) == ("10 %", "90 %")
    assert [tuple(each) for each in points.customdata] == [(0, 0), (0, 1)]
    assert points.hovertext[0] == "&lt;b&gt;"
    assert (ring.x[0], ring.y[0]) == (2.0, 5.0)
    assert figure.layout.annotations[0].text == "&lt;w&gt;"
