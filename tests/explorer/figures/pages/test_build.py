"""The figures of a built query: every key in its place, masked ones left out."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.base import style
from explorer.figures.pages.build import built_row, key_plane

TOKENS = ("▁a", "▁b", "▁a", "▁c")
MASK = np.array([True, True, True, False])
SCORES, WEIGHTS = np.array([3.0, 1.0, 2.0, 9.0]), np.array([0.67, 0.09, 0.24, 0.0])


def test_a_row_shows_weights_and_scores_of_visible_keys_and_hatches_the_others():
    bars, points, hatched = built_row("cross", TOKENS, MASK, SCORES, WEIGHTS, (0, 2), [0.5]).data
    assert np.asarray(bars.y) == pytest.approx([0.67, 0.09, 0.24, np.nan], nan_ok=True)
    assert np.asarray(points.y) == pytest.approx([3, 1, 2, np.nan], nan_ok=True)
    assert [color == style.HUES["cross"] for color in bars.marker.color] == [True, False, True, False]
    assert len({*bars.hovertext}) == len(TOKENS)
    assert hatched.hoverinfo == "skip"


def test_the_arrow_points_along_the_query_whatever_its_length():
    points = np.array([[2.0, 0.0], [1.0, 1.0], [0.5, -1.0], [3.0, 0.2]])
    for length in (0.1, 30.0):
        figure = key_plane("encoder", TOKENS, points, length * np.array([0.6, -0.8]), (0, 1))
        arrow = figure.layout.annotations[0]
        assert arrow.y / arrow.x == pytest.approx(-0.8 / 0.6)
        assert figure.layout.yaxis.range[0] < arrow.y < figure.layout.yaxis.range[1]
    assert not key_plane("encoder", TOKENS, points, np.zeros(2), (0, 1)).layout.annotations
