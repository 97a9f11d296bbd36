"""Dots with whiskers, one row for each case."""

from __future__ import annotations

import pytest

from figures.pages.language.intervals import Dots, dots

CELLS = [{"value": 0.9, "low": 0.8, "high": 0.95}, None, {"value": 0.4, "low": 0.1, "high": 0.6}]
FOUND = [
    Dots("<own>", CELLS, ["a", "b", "c"], "#9457BE"),
    Dots("other", CELLS, ["d", "e", "f"], "#B8860B", "square", [[0.1, 0.2], [], [0.3]]),
]


def test_whiskers_reach_from_low_to_high_and_rows_without_a_value_have_no_dot() -> None:
    own = dots(["one", "two", "three"], FOUND, "accuracy", 0.5).data[0]
    assert list(own.x) == [0.9, 0.4]
    assert list(own.error_x.array) == pytest.approx([0.05, 0.2])
    assert list(own.error_x.arrayminus) == pytest.approx([0.1, 0.3])
    assert list(own.hovertext) == ["a", "c"]
    assert own.name == "&lt;own&gt;"


def test_dots_of_one_row_stand_apart_around_it() -> None:
    own, _, other = dots(["one", "two", "three"], FOUND, "accuracy", 0.5).data
    assert [round(float(y)) for y in own.y] == [round(float(y)) for y in other.y] == [0, 2]
    assert all(a < b for a, b in zip(own.y, other.y, strict=True))


def test_single_measurements_are_ticks_in_their_row() -> None:
    ticks = dots(["one", "two", "three"], FOUND, "accuracy", 0.5).data[1]
    assert list(ticks.x) == [0.1, 0.2, 0.3]
    assert len(set(ticks.y)) == 2


def test_a_mark_is_a_line_and_rows_have_names() -> None:
    figure = dots(["one", "two", "three"], FOUND, "accuracy", 0.5)
    assert figure.layout.shapes[0].x0 == 0.5
    assert [each.text for each in figure.layout.annotations] == ["one", "two", "three"]
