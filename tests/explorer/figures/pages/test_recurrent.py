"""Centres on a map, and ways through a sentence."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest

from explorer.figures.pages.recurrent import paths, with_centres

TOKENS = ("▁The", "▁cat", "▁<b>", "</s>")


@pytest.mark.parametrize(("ends", "steps"), [((0, 3), 3), ((3, 1), 2), ((0, 1), 1)])
def test_as_many_arrows_are_strong_as_the_state_takes_steps(ends, steps):
    figure = paths(TOKENS, ends)
    arrows = [each for each in figure.layout.annotations if each.showarrow]
    assert len(arrows) == len(TOKENS) - 1
    strong = [each for each in arrows if each.arrowwidth > 2]
    assert len(strong) == steps
    said = [each.text for each in figure.layout.annotations if not each.showarrow]
    assert said[0].startswith(f"recurrent: {steps} step{'s' * (steps > 1)},")
    assert said[1] == "self-attention: 1 step"
    assert len(figure.layout.shapes) == 1


def test_a_token_and_itself_have_no_way_between_them():
    figure = paths(TOKENS, (2, 2))
    assert not figure.layout.shapes
    assert not [each for each in figure.layout.annotations if each.showarrow and each.arrowwidth > 2]


def test_tokens_are_escaped_and_of_many_only_some_are_named():
    assert "&lt;b&gt;" in paths(TOKENS, (0, 3)).layout.xaxis.ticktext
    assert len(paths(["▁a"] * 200, (0, 199)).layout.xaxis.ticktext) <= 60


def test_centres_stand_in_their_rows_and_those_outside_the_map_are_left_out():
    figure = with_centres(go.Figure(), np.array([2.5, 4.0, 40.0]), 2, 8)
    marks = figure.data[0]
    assert list(marks.y) == [0, 1, 2]
    assert list(marks.x[:2]) == [0.5, 2.0]
    assert np.isnan(marks.x[2])
    assert list(marks.customdata[:2]) == [3.5, 5.0]
