"""A measure in the place of weights: the numbers of a map, whole and in a window."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.lenses.measures.carried import carried
from explorer.lenses.measures.effect import effect
from explorer.lenses.measures.maps import LEAST, ON_ALL, carried_map, effect_in, effect_map, shares
from transformer import Capture, Window


@pytest.fixture(scope="module")
def run(translator):
    return translator.force("one two three nine", "two one four", capture=Capture(residual=True))


def test_shares_of_a_row_sum_to_one_and_an_empty_row_stays_empty():
    found = shares(np.array([[1, 3], [0, 0]], dtype=np.float32))
    assert found.tolist() == [[0.25, 0.75], [0, 0]]


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_window_of_what_was_carried_holds_shares_of_whole_rows(translator, run, kind):
    found, window = carried(translator.model, run, kind, 1, 2), Window(1, 3, 1, 2)
    view = carried_map(run.map(kind, 1, 2, window), found)
    whole = found.norms / found.norms.sum(1, keepdims=True)
    np.testing.assert_allclose(view.weights, whole[1:3, 1:2], rtol=1e-5)
    np.testing.assert_array_equal(view.measured, found.norms[1:3, 1:2])
    assert view.measure == "carried"
    assert {check.name for check in found.audit.checks} < {check.name for check in view.audit.checks}


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_effects_in_a_window_are_those_of_the_whole_map(translator, run, kind):
    found = effect_in(translator, run, kind, 1, 2, Window(1, 4, 0, 2))
    np.testing.assert_allclose(found, effect(translator, run, kind, 1, 2)[1:4, :2], atol=1e-5)


def test_colours_are_shares_of_the_largest_effect_and_small_effects_stay_pale(run):
    view = run.map("decoder", 0, 0)
    effects = np.where(view.mask, np.float32(0), np.float32(np.nan))
    effects[1, 0], effects[2, 1] = -2, 1
    found = effect_map(view, effects)
    assert found.weights[1, 0] == 1
    assert found.weights[2, 1] == 0.5
    assert found.weights[~view.mask].sum() == 0
    assert effect_map(run.map("encoder", 0, 0), effects).measure == ON_ALL
    pale = effect_map(view, effects / 100)
    assert pale.weights.max() == pytest.approx(0.02 / LEAST)
