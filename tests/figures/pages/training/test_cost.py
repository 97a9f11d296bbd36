"""Costs on logarithmic axes."""

from __future__ import annotations

import math

import pytest

from figures.pages.training.cost import LOOKS, Cost, costs

LINES = [
    Cost("attention", "<self>", (64, 90, 128), (1.0, 2.0, 4.0)),
    Cost("x", "other", (64, 90, 128), (1, 1, 2)),
]


def test_both_axes_are_logarithmic_and_powers_of_two_are_named() -> None:
    figure = costs(LINES, ("n", "ms"))
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert list(figure.layout.xaxis.ticktext) == ["64", "128"]


def test_lines_hold_the_values_escaped_names_and_marks_if_measured() -> None:
    figure = costs(LINES, ("n", "ms"))
    assert list(figure.data[0].y) == [1.0, 2.0, 4.0]
    assert figure.data[0].name == "&lt;self&gt;"
    assert "markers" in figure.data[0].mode
    assert costs(LINES, ("n", "ms"), points=False).data[0].mode == "lines"


def test_the_mark_stands_at_its_length() -> None:
    figure = costs(LINES, ("n", "ms"), (90, "n = d"))
    assert figure.layout.shapes[0].x0 == 90
    assert figure.layout.annotations[0].x == pytest.approx(math.log10(90))
    assert not costs(LINES, ("n", "ms")).layout.shapes


def test_no_two_kinds_look_the_same() -> None:
    layers = ("attention", "written", "recurrent", "convolutional", "restricted")
    assert len({LOOKS[each] for each in layers}) == 5
    assert len({LOOKS[each] for each in ("parallel", "cached", "again")}) == 3
