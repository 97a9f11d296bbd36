from __future__ import annotations

from dataclasses import replace

import numpy as np
from head_views import decoder_view, view

from explorer.figures.maps.heatmap import heatmap
from explorer.figures.pages.masks import leak_bars, mask_map, padding_grid, score_map, weight_map


def test_maps_of_one_head_differ_in_their_cells_alone():
    head = decoder_view(9)
    scored = replace(head, scores=np.where(head.mask, head.scores - 10, -np.inf).astype(np.float32))
    maps = [draw(scored, 350) for draw in (heatmap, mask_map, score_map, weight_map)]
    assert len({(each.layout.height, str(each.layout.margin)) for each in maps}) == 1
    mask, scores, weights = (each.data[0] for each in maps[1:])
    assert np.array_equal(mask.z, np.where(head.mask, 90, 0))
    assert mask.text[0][1].endswith("(masked)")
    assert maps[1].data[1].fillpattern.shape == "/"
    most = np.abs(scored.scores[head.mask]).max()
    assert (scores.zmin, scores.zmax, scores.colorbar.ticktext[0]) == (-most, most, f"−{most:.1f}")
    assert np.array_equal(scores.z, np.where(head.mask, scored.scores, 0))
    assert np.array_equal(weights.z, maps[0].data[0].z)


def test_what_leaks_has_a_colour_under_the_hatching():
    head = decoder_view()
    leaking = replace(head, weights=np.full(head.mask.shape, 1 / 6, dtype=np.float32))
    assert np.unique(weight_map(leaking).data[0].z).tolist() == [1 + round(254 / 6)]
    assert (heatmap(leaking).data[0].z[~head.mask] == 0).all()


def test_bars_hold_the_weight_on_visible_and_on_masked_keys_level_with_the_rows_of_a_map():
    wide = view("cross", ("▁a", "b"), tuple("vwxyz"))
    figure = leak_bars(wide, 300, visible=np.array([0.25, 1.0]), masked=np.array([0.75, 0.0]))
    assert {each.name: each.x.tolist() for each in figure.data} == {
        "on visible keys": [0.25, 1.0],
        "on masked keys": [0.75, 0.0],
    }
    assert list(figure.layout.yaxis.range) == [4.5, -0.5]
    beside, own = heatmap(wide, 300).layout, figure.layout
    assert (own.height, own.margin.t, own.margin.b) == (beside.height, beside.margin.t, beside.margin.b)


def test_a_batch_is_a_rectangle_with_its_padding_hatched_and_one_row_framed():
    mask = np.array([[True, True, True], [True, False, False]])
    tokens = [("▁a", "b", "</s>"), ("</s>", "<pad>", "<pad>")]
    figure = padding_grid(tokens, mask, 1, "red")
    cells, hatched = figure.data
    assert cells.z.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert list(cells.text[0]) == ["a", "‿b", "&lt;/s&gt;"]
    assert (min(hatched.x), max(hatched.x), min(hatched.y), max(hatched.y)) == (0.5, 2.5, 0.5, 1.5)
    assert (figure.layout.shapes[0].y0, figure.layout.shapes[0].y1) == (0.53, 1.47)
    assert (cells.textfont.color, list(figure.layout.xaxis.ticktext)) == ("red", ["1", "2", "3"])
