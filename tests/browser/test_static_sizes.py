"""Where and how large figures are drawn: the pure functions of `frame.js` and `fit.js`, in Chromium."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from .conftest import STATIC

SCRIPTS = next(STATIC.glob("linked_view-*")).name
Call = Callable[..., Any]


# --- frame.js -----------------------------------------------------------------------------------------------


def layout(
    rows: int, columns: int, width: int = 192, height: int = 292, **yaxis: object
) -> dict[str, object]:
    """A layout with 100 by 200 px inside its margins, rows from top to bottom."""
    return {
        "width": width,
        "height": height,
        "margin": {"l": 88, "t": 88, "r": 4, "b": 4},
        "xaxis": {"range": [-0.5, columns - 0.5]},
        "yaxis": {"range": [rows - 0.5, -0.5], **yaxis},
    }


def test_places_follow_from_the_layout(call: Call) -> None:
    axes = call("frame.axesOf", layout(4, 5))
    assert axes["across"] == {"offset": 88, "length": 100, "first": -0.5, "last": 4.5}
    assert axes["down"] == {"offset": 88, "length": 200, "first": -0.5, "last": 3.5}
    assert call("frame.along", axes["across"], 0) == 10
    assert call("frame.within", axes["down"], 3) == 88 + 175
    assert call("frame.box", axes, [-0.5, 4.5], [0.5, 1.5]) == {
        "left": 0,
        "top": 50,
        "width": 100,
        "height": 50,
    }


def test_cells_of_a_map_are_square(call: Call) -> None:
    for rows, columns in ((1, 1), (4, 5), (20, 5), (5, 64)):
        axes = call("frame.axesOf", layout(rows, columns, scaleanchor="x"))
        side = min(100 / columns, 200 / rows)
        drawn = [axes["across"]["length"] / columns, axes["down"]["length"] / rows]
        assert drawn == pytest.approx([side, side]), (rows, columns)


def test_a_frame_scrolls_only_to_what_it_does_not_show(call: Call) -> None:
    assert [call("frame.scrolled", place, 50, 100) for place in (50, 150)] == [50, 50]
    assert [call("frame.scrolled", place, 50, 100) for place in (0, 49, 60.5, 151)] == [0, 0, 50, 101]


def test_the_line_under_the_pointer_is_the_nearest_one(call: Call) -> None:
    lines = [{"y1": 0, "y2": 100}, {"y1": 100, "y2": 0}, {"y1": 0, "y2": 100, "same": True}]
    assert call("frame.nearestLine", lines, 0.25, 27, 7) == lines[0]
    assert call("frame.nearestLine", lines, 0.25, 72, 7) == lines[1]
    assert call("frame.nearestLine", lines, 0.25, 50, 7) is None
    assert call("frame.nearestLine", lines, 0, 7, 7) is None
    assert call("frame.nearestLine", [], 0.5, 50, 7) is None


def test_the_frame_on_the_whole_matrix_holds_the_window(call: Call) -> None:
    every = [[i, i + 1] for i in range(100)]
    assert call("frame.shownPart", every, every[:16]) == [0.5, 16.5]
    assert call("frame.shownPart", every, every[84:]) == [84.5, 100.5]
    words = [[0, 2], [2, 3], [3, 7]]
    assert call("frame.shownPart", words, words[1:]) == [1.5, 3.5]
    assert [call("frame.spanAt", words, at) for at in (-3, 0.6, 2.4, 9)] == [[0, 2], [0, 2], [2, 3], [3, 7]]


# --- fit.js -------------------------------------------------------------------------------------------------

LABELS = {"rows": 4.0, "columns": 3.0}
"""Widths of the widest labels, in multiples of the font size."""


def fitted(call: Call, rows: int, columns: int, room: tuple[float, float], **more: object) -> dict[str, Any]:
    given = {"rows": rows, "columns": columns, "widest": LABELS, "room": room, "smallest": 1, **more}
    return call("fit.fitted", given)


def test_a_map_fits_its_room_and_its_labels_do_not_touch(call: Call) -> None:
    rooms = ((200, 160), (300, 500), (700, 650))
    for room, (rows, columns) in product(rooms, ((1, 1), (6, 8), (25, 21), (64, 64), (3, 64))):
        found = fitted(call, rows, columns, room)
        case = f"{rows} × {columns} in {room}: {found}"
        assert not found["scrolls"], case
        assert found["size"][0] <= room[0] + 1e-6, case
        assert found["size"][1] <= room[1] + 1e-6, case
        assert found["cell"] * found["every"] >= 0.8 * found["font"] - 1e-6, case
        assert found["margin"]["l"] > LABELS["rows"] * found["font"], case
        assert found["margin"]["t"] > LABELS["columns"] * found["font"], case


def test_cells_shrink_before_labels_are_left_out_and_scroll_last(call: Call) -> None:
    sizes = [fitted(call, count, count, (360, 360), smallest=6) for count in (6, 13, 20, 25, 40, 64)]
    cells, fonts = [each["cell"] for each in sizes], [each["font"] for each in sizes]
    assert cells == sorted(cells, reverse=True)
    assert fonts == sorted(fonts, reverse=True)
    assert [each["scrolls"] for each in sizes] == [False] * 5 + [True]
    assert [each["every"] for each in sizes[:4]] == [1] * 4
    assert sizes[-1]["cell"] == 6
    assert sizes[-1]["size"][0] > 360


def test_cells_are_no_larger_than_asked_and_sums_keep_their_room(call: Call) -> None:
    assert fitted(call, 2, 2, (900, 900), largest=84)["cell"] == 84
    assert fitted(call, 9, 9, (400, 400), right=76)["margin"]["r"] == 76


def test_some_labels_are_left_out_evenly(call: Call) -> None:
    assert call("fit.thinned", list("abcdefg"), 3) == ["a", "d", "g"]
    assert call("fit.thinned", list("abc"), 1) == list("abc")


def test_a_title_is_shortened_at_its_seams(scripts_alone: Any) -> None:
    title = "queries: decoder, layer 2 (token predicted)"
    script = f"""([title, room]) => import('/{SCRIPTS}/fit.js')
      .then(fit => fit.titleFor(title, room, (text) => text.length))"""
    found = {room: scripts_alone.evaluate(script, [title, room]) for room in (99, len(title), 30, 10, 2)}
    assert found == {
        99: title,
        len(title): title,
        30: "queries: decoder, layer 2",
        10: "queries",
        2: "queries",
    }


def test_the_pictures_fill_what_the_window_leaves(scripts_alone: Any) -> None:
    """The large map takes at most the width that its height allows, as maps of square cells do."""
    script = f"""([width, height]) => import('/{SCRIPTS}/fit.js').then(({{ spread }}) => spread({{
      width, height, gap: 18, bars: [170, 150], around: 70,
      measure: ([wide, high]) => Math.min(wide, high + 30),
    }}))"""
    layouts = {}
    for width, height in ((1120, 470), (990, 300), (1440, 740), (1440, 400), (800, 330), (640, 300)):
        found = scripts_alone.evaluate(script, [width, height])
        (side, high), (bars, tall), main = found["side"], found["next"], found["main"]
        layouts[width, height], case = found["layout"], f"{width} × {height}: {found}"
        across = {"over": [main, side, side], "beside": [main, side, side, bars], "square": [main, side]}
        columns = across[found["layout"]]
        assert sum(columns) + 18 * (len(columns) - 1) <= width + 1e-6, case
        assert side >= 220, case
        if found["layout"] != "square":
            assert high + 70 + (18 + tall if found["layout"] == "over" else 0) <= height + 1e-6, case
            assert min(side, high) <= main, case
            assert bars >= 170, case
    assert layouts == {
        (1120, 470): "over",
        (990, 300): "beside",
        (1440, 740): "over",
        (1440, 400): "beside",
        (800, 330): "square",
        (640, 300): "square",
    }
