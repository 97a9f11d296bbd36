from __future__ import annotations

import numpy as np
from head_views import decoder_view, view

from explorer.figures.maps.heatmap import heatmap
from explorer.figures.pages.masks import leak_bars, mask_map, padding_grid, score_map, weight_map


def test_a_mask_is_drawn_with_two_levels_and_its_hidden_part_hatched():
    head = decoder_view()
    cells, hatched = mask_map(head).data
    assert (cells.z[head.mask] == 90).all()
    assert (cells.z[~head.mask] == 0).all()
    assert hatched.fillpattern.shape == "/"
    assert cells.text[0][1].endswith("(masked)")


def test_scores_lie_on_a_scale_centred_on_zero_and_minus_infinity_on_nothing():
    head = decoder_view()
    scores = np.where(head.mask, head.scores - 10, -np.inf)
    cells = score_map(head, scores).data[0]
    assert (cells.zmin, cells.zmax) == (-cells.zmax, cells.zmax)
    assert cells.zmax == np.abs(scores[head.mask]).max()
    assert (cells.z[~head.mask] == 0).all()
    assert cells.colorbar.ticktext[0] == f"−{cells.zmax:.1f}"


def test_what_leaks_is_drawn_under_the_hatching_and_named():
    head = decoder_view()
    weights = np.full(head.mask.shape, 1 / 6, dtype=np.float32)
    cells = weight_map(head, weights).data[0]
    assert (cells.z > 0).all()
    assert cells.text[0][1].endswith("(leaks)")
    assert "leaks" not in cells.text[1][0]


def test_bars_hold_the_weight_on_visible_and_on_masked_keys():
    figure = leak_bars(decoder_view(2), np.array([0.25, 1.0]), np.array([0.75, 0.0]), 300)
    assert [trace.name for trace in figure.data] == ["on visible keys", "on masked keys"]
    assert figure.data[1].x.tolist() == [0.75, 0.0]
    assert figure.layout.yaxis.ticktext[0] == "&lt;s&gt;"


def test_a_batch_is_a_rectangle_with_its_padding_hatched():
    mask = np.array([[True, True, True], [True, False, False]])
    figure = padding_grid([("▁a", "b", "</s>"), ("</s>", "<pad>", "<pad>")], mask, 1)
    assert figure.data[0].z.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert (min(figure.data[2].x), max(figure.data[2].x)) == (1.5, 3.5)
    assert 1.5 < figure.layout.shapes[0].y0 < figure.layout.shapes[0].y1 < 2.5
    assert list(figure.data[1].text[:3]) == ["a", "‿b", "&lt;/s&gt;"]


def test_maps_that_stand_side_by_side_have_the_same_plot_area():
    head = decoder_view(9)
    size = 350
    maps = (heatmap(head, size), mask_map(head, size), score_map(head, head.scores, size))
    drawn = (*maps, weight_map(head, head.weights, size))
    assert len({(each.layout.height, str(each.layout.margin)) for each in drawn}) == 1
    bars = leak_bars(head, np.ones(9), np.zeros(9), size).layout
    upright = [(each.height, each.margin.t, each.margin.b) for each in (bars, drawn[0].layout)]
    assert upright[0] == upright[1]


def test_bars_stand_at_the_rows_of_a_map_with_more_columns():
    wide = view("cross", ("▁a", "b"), tuple("vwxyz"))
    assert list(leak_bars(wide, np.ones(2), np.zeros(2)).layout.yaxis.range) == [4.5, -0.5]
