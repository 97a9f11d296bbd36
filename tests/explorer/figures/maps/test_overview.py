from __future__ import annotations

import numpy as np

from explorer.figures import Tile, overview_spec
from explorer.figures.base import style


def tiles(layers: int, heads: int, size: int = 5) -> list[list[Tile]]:
    mask = np.ones((size, size), bool)
    return [
        [Tile.of(np.full((size, size), (layer * heads + head) / 100), mask) for head in range(heads)]
        for layer in range(layers)
    ]


def test_all_heads_are_one_heatmap():
    figure = style.figure(overview_spec(tiles(3, 8), "cross", (0, 0)))
    assert [trace.type for trace in figure.data] == ["heatmap", "scatter"]


def test_rows_are_layers_and_columns_are_heads():
    figure = style.figure(overview_spec(tiles(3, 8), "cross", (0, 0)))
    z, targets = figure.data
    for x, y, (layer, head) in zip(targets.x, targets.y, targets.customdata, strict=True):
        assert z.z[round(y), round(x)] == 1 + round(254 * (layer * 8 + head) / 100)


def test_the_selected_head_is_framed():
    figure = style.figure(overview_spec(tiles(3, 8), "cross", (1, 2)))
    frame = figure.layout.shapes[-1]
    target = figure.data[1]
    place = [tuple(each) for each in target.customdata].index((1, 2))
    assert frame.x0 < target.x[place] < frame.x1
    assert frame.y0 < target.y[place] < frame.y1
    assert frame.line.color == "#D55E00"


def test_tiles_of_long_sentences_are_pooled_to_32():
    tile = Tile.of(np.zeros((200, 100)), np.ones((200, 100), bool))
    assert tile.values.shape == (29, 25)
    assert (tile.rows, tile.columns) == (7, 4)
    assert tile.pooled


def test_ordered_heads_keep_their_own_numbers():
    order = [[2, 0, 1], [1, 2, 0]]
    figure = style.figure(overview_spec(tiles(2, 3), "cross", (1, 2), order=order))
    z, targets = figure.data
    for x, y, (layer, head) in zip(targets.x, targets.y, targets.customdata, strict=True):
        assert z.z[round(y), round(x)] == 1 + round(254 * (layer * 3 + head) / 100)
    assert [note.text for note in figure.layout.annotations] == ["H3", "H1", "H2", "H2", "H3", "H1"]
    frame, place = figure.layout.shapes[-1], [tuple(each) for each in targets.customdata].index((1, 2))
    assert frame.x0 < targets.x[place] < frame.x1
