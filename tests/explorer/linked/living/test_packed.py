from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.maps.heatmap import levels
from explorer.linked.living.packed import CellError, cells, scores

EVERY = np.arange(1001).reshape(1, 1, 7, 143)
"""All thousandths."""


def test_every_thousandth_comes_back():
    weights = (EVERY / 1000).astype(np.float32)
    found, beside = cells(weights, np.ones(EVERY.shape, bool))
    near = (1000 * (found.astype(int) - 1) / 254 + 0.5).astype(int)
    assert (near + beside - 128 == EVERY).all()
    assert set(np.unique(beside)) <= {126, 127, 128, 129, 130}


def test_colours_are_those_of_a_map_and_masked_cells_are_zero():
    weights = np.random.default_rng(0).dirichlet(np.ones(9), (2, 3, 5)).astype(np.float32)
    mask = np.broadcast_to(np.tri(5, 9, 2, bool), weights.shape)
    weights = np.where(mask, weights, 0)
    found, beside = cells(weights, mask)
    assert (found == levels(weights, mask)).all()
    assert (beside[~mask] == 128).all()


@pytest.mark.parametrize("wrong", [np.nan, -0.2, 1.5, np.inf])
def test_what_is_no_weight_is_refused(wrong: float):
    with pytest.raises(CellError, match="from 0 to 1"):
        cells(np.full((1, 1, 2, 2), wrong, np.float32), np.ones((1, 1, 2, 2), bool))


def test_scores_come_back_to_two_decimals_unless_one_is_too_large():
    given = np.random.default_rng(1).normal(0, 40, (2, 2, 6, 6)).astype(np.float32)
    found = scores(given)
    assert found is not None
    low, high = (each.astype(int) for each in found)
    assert np.abs((low + 256 * high - 2**15) / 100 - given).max() <= 0.0051
    for wrong in (400.0, -400.0, np.nan, np.inf):
        given[0, 0, 0, 0] = wrong
        assert scores(given) is None
