"""All heads in an order, against plain loops, and a wall of 24 × 16 heads at 1,024 tokens."""

import json
import math
from itertools import product

import numpy as np
import pytest
from random_models import random_language_model

from explorer.figures.base.captions import CHECKING
from explorer.figures.maps.heatmap import levels, pool
from explorer.figures.maps.overview import Tile
from explorer.lenses.heads import walls
from explorer.lenses.heads.roles import MIXED, ROLES
from explorer.lenses.heads.walls import HeadGroup
from explorer.linked.view.feeds import ranking_feed, wall_feed
from transformer.text.tokenizer import Tokenizer
from transformer.translator import Translator

WIRE = 1_500_000
"""Most bytes that a page may take."""
NUMBERS = [[0.5, math.nan, 0.25], [0.75, 0.5, -1.0]]
PLACES = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_the_largest_number_is_first_and_heads_without_one_are_last():
    (group,) = walls.by_number(NUMBERS)
    expected = list[tuple[int, int]]()
    left = [place for place in PLACES if not math.isnan(NUMBERS[place[0]][place[1]])]
    while left:  # by selection, the earlier of equal ones first
        best = left[0]
        for place in left:
            if NUMBERS[place[0]][place[1]] > NUMBERS[best[0]][best[1]]:
                best = place
        expected.append(best)
        left.remove(best)
    assert group == HeadGroup("", (*expected, (0, 1)))


def test_heads_stand_by_layer_and_by_role_in_the_order_of_roles():
    assert walls.by_layer((2, 3)) == [
        HeadGroup("L1", ((0, 0), (0, 1), (0, 2))),
        HeadGroup("L2", ((1, 0), (1, 1), (1, 2))),
    ]
    roles = [["sink", "", "previous token"], ["sink", "content", ""]]
    expected = []
    for name in (*ROLES, MIXED):
        heads = [place for place in PLACES if (roles[place[0]][place[1]] or MIXED) == name]
        if heads:
            expected.append(HeadGroup(name, tuple(heads)))
    assert walls.by_role(roles) == expected
    assert [group.name for group in expected] == ["previous token", "sink", "content", MIXED]


@pytest.mark.parametrize(
    ("heads", "left"),
    [
        (None, [3, 3]),
        ([(0, 1), (1, 0), (1, 2)], [1, 2]),
        ([(1, 1)], [1]),
        ([], []),
        ([(7, 7)], []),
    ],
)
def test_heads_that_are_left_out_take_their_empty_groups_along(heads, left: list[int]):
    groups = walls.narrowed(walls.by_layer((2, 3)), heads)
    assert [len(group.heads) for group in groups] == left
    if heads is not None:
        assert {head for group in groups for head in group.heads} == {*heads} & {*PLACES}


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_weight_on_a_key_is_that_of_each_head_s_map(translator, kind: str):
    run = translator.translate("one two three", max_length=4)
    layers, heads = run.config.sizes[kind]
    found = walls.weights_of_cell(run, kind, 2, 1)
    assert found.shape == (layers, heads)
    for layer, head in product(range(layers), range(heads)):
        assert found[layer, head] == pytest.approx(run.weights(kind, layer, head)[2, 1], abs=1e-6)


@pytest.mark.parametrize("scale", ["linear", "sqrt", "log"])
def test_a_tile_that_is_pooled_first_has_the_levels_of_one_that_is_coloured_first(scale: str):
    weights = np.random.default_rng(4).random((70, 50)).astype(np.float32)
    mask = np.tri(70, 50, dtype=bool)
    for side in (24, 32, 100):
        cells, rows, columns = pool(levels(weights, mask, scale), side)
        tile = Tile.at_most(side, weights, mask, scale)
        assert np.array_equal(tile.values, cells)
        assert (tile.rows, tile.columns) == (rows, columns)


def test_a_wall_of_24_by_16_heads_at_1024_tokens_is_small(tokenizer: Tokenizer):
    sizes = {"n_layers": 24, "n_heads": 16, "d_model": 64, "d_ff": 64, "trained_length": 1024}
    model = random_language_model(vocab_size=tokenizer.vocab_size, **sizes)
    writer = Translator(model, tokenizer, name="writer")
    run = writer.force(" ".join(["one two three four"] * 255))
    assert 1000 < len(run.target_tokens) <= 1024
    places = [*product(range(24), range(16))]
    tiles = [
        [
            Tile.at_most(24, run.weights("decoder", layer, head), run.mask("decoder", layer, head))
            for head in range(16)
        ]
        for layer in range(24)
    ]
    assert {tile.values.shape for row in tiles for tile in row} <= {(24, 24), (23, 23)}
    pictures = len(json.dumps(wall_feed("trace", "decoder", tiles, caption="", badge=CHECKING)))
    row = walls.weights_of_cell(run, "decoder", 900, 7)
    texts = [[f"{weight:.2f}" for weight in line] for line in row]
    notes = [["head 16 of layer 24 · previous token · 0.00"] * 16] * 24
    groups = walls.by_number(row.tolist())
    standing = ranking_feed(
        "trace", groups, (0, 0), numbers=texts, notes=notes, order="by weight", aligned=False
    )
    assert [*map(tuple, standing["groups"][0]["heads"])] == sorted(
        places, key=lambda place: -row[place]
    )
    moved = len(json.dumps(standing))
    assert pictures < 320_000 < WIRE
    assert moved < 40_000  # what a step of the cursor sends
