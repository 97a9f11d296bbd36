"""The frame of maps: room for every label and title, the same for every text."""

from __future__ import annotations

import pytest

from explorer.figures.base import labels, style
from explorer.figures.base.grid import token_grid

LONGEST = "W" * 40


@pytest.mark.parametrize("count", [1, 5, 26, 40, 64])
@pytest.mark.parametrize("size", [270, style.SIZE, style.LARGE, 520])
def test_labels_as_wide_as_any_leave_room_for_the_title(size: int, count: int):
    layout = token_grid([LONGEST] * count, [LONGEST] * count, ("rows", "columns"), size)
    axis = layout["yaxis"]
    widest = max(map(labels.width, axis["ticktext"])) * axis["tickfont"]["size"]
    title = 15
    assert widest + axis["ticklabelstandoff"] + title <= layout["margin"]["l"]


@pytest.mark.parametrize("count", [5, 26, 40, 64])
@pytest.mark.parametrize("size", [270, style.SIZE, style.LARGE])
def test_labels_stand_far_enough_apart(size: int, count: int):
    axis = token_grid(["x"] * 3, ["y"] * count, ("rows", "columns"), size)["xaxis"]
    apart = style.pitch(count, size) * (axis["tickvals"][1] - axis["tickvals"][0])
    assert apart >= 0.75 * axis["tickfont"]["size"]


def test_rows_are_written_as_small_as_the_longer_side_asks():
    layout = token_grid(["x"] * 3, ["y"] * 40, ("rows", "columns"))
    assert layout["yaxis"]["tickfont"] == layout["xaxis"]["tickfont"] == {"size": 8}


def test_more_room_for_labels_makes_the_map_larger_and_its_cells_not_smaller():
    usual, wide = (token_grid(["x"], ["y"], ("", ""), 330, room) for room in (labels.ROOM, labels.ROOM + 2))
    inner = [each["width"] - each["margin"]["l"] - each["margin"]["r"] for each in (usual, wide)]
    assert inner[0] == inner[1]
    assert wide["margin"]["t"] - usual["margin"]["t"] == 20


def test_nothing_beside_a_map_moves_its_edges():
    assert token_grid(["x"], ["y"], ("", ""))["margin"]["autoexpand"] is False


def test_a_title_longer_than_the_map_begins_before_it():
    columns, rows = token_grid(["x"], ["y"], ("short", "long " * 12), 270)["annotations"]
    assert columns["xshift"] < 0
    assert rows["yshift"] == 0
