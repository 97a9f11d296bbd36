"""The functions of the scripts alone, in Chromium: what each returns, and what the smallest parts
draw."""

import csv
import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from head_views import view

from explorer.figures.base import labels, style
from explorer.figures.maps.heatmap import pool
from explorer.lenses.words.reading import Reading, read_view
from explorer.lenses.words.together import as_one

from .conftest import SCRIPTS

Call = Callable[..., Any]
VIEW, PAGE = (f"{SCRIPTS}/{name}" for name in ("linked_view", "page"))

NONE = {"steps": [], "sources": [], "together": "mean"}
SEVERAL = {"steps": [1, 2], "sources": [0, 4], "together": "sum"}
AT = {"step": 1, "source": 3}
ROOM = {"steps": 5, "sources": 8}
ASKED = {"step": 4, "source": None, "chosen": NONE}
TOLD = {"step": 2, "source": 6, "chosen": NONE}
NOW = {"at": ASKED, "seq": 7, "trace": "one", "busy": False}
FOLLOW = [2, 0, 5]
CROSS = {"rows": "step", "columns": "source"}
OWN = {"rows": "source", "columns": "source"}
WINDOW = [[16, 17], [17, 20], [21, 22]]
"""Part of a long sentence: a word of three pieces, then a hidden token."""
SPANS = {"rows": WINDOW, "columns": [[0, 1], [1, 2]]}
IN_CROSS = {**CROSS, "spans": SPANS}
IN_OWN = {**OWN, "spans": {"rows": SPANS["columns"], "columns": WINDOW}}
NAMES = {"reads": ["<s>", "ein"], "predicts": ["ein", "$& {reads}"], "source": ["שלום", ""]}
ABOUT = "reads “{reads}”, predicts “{predicts}”"
LINES = [{"y1": 0, "y2": 100}, {"y1": 100, "y2": 0}, {"y1": 0, "y2": 100, "same": True}]
EVERY = [[i, i + 1] for i in range(100)]
WORDS = [[0, 2], [2, 3], [3, 7]]
STOPS = [[0, "rgba(0,0,0,0)"], [0.5, "#ffffff"], [0.5, "#ff0000"], [1, "rgba(0,0,255,0.5)"]]
ROOMY = {"l": 118, "r": 92, "t": 4, "b": 22}
PLACE = {"step": 6, "source": 2}
KINDS = {"cross": {"size": [6, 8]}}
STRIPS = {"steps": 9, "names": {"source": ["a", "b", "c"]}}
POSITIONS = {"step": "step", "source": "source token"}
NOWHERE = (
    "",
    "#",
    "#step=0&cross=7.1",
    "#step=10&cross=1",
    "#step=1e0&cross=1.2.3",
    "#step=-1&cross=.5",
)
TABLE = {"rows": ['a"b', "=1+1"], "columns": ["x,y"]}


def moved(
    change: dict[str, Any], step: int, source: int | None
) -> tuple[list[Any], dict[str, Any]]:
    return [AT, change, ROOM], {"step": step, "source": source, "chosen": NONE}


def heard(
    ack: int, place: object, changed: bool, trace: str = "one", **now: object
) -> tuple[list[Any], Any]:
    return [{**NOW, **now}, {**TOLD, "ack": ack, "trace": trace}], {"at": place, "changed": changed}


def unheard(
    ack: int, expected: bool, trace: str = "one", untold: bool = False
) -> tuple[list[Any], bool]:
    return [{"seq": 7, "trace": "one", "untold": untold}, {"ack": ack, "trace": trace}], expected


def picked(
    plot: object, rows: object, columns: object, source: int | None, expected: object
) -> Any:
    return [plot, rows, columns, {"step": 3, "source": source}, 3 if plot is CROSS else 0], expected


RETURNS: dict[str, list[tuple[list[Any], Any]]] = {
    "cursor.moved": [
        moved({"step": -1}, 0, 3),
        moved({"step": 5}, 4, 3),
        moved({}, 1, 3),
        moved({"source": -4}, 1, 0),
        moved({"source": None}, 1, None),
        moved({"step": 2, "source": 9}, 2, 7),
        (
            [{"step": 0, "source": 1, "chosen": NONE}, {"source": 2}, {"steps": 0, "sources": 8}],
            {"step": 0, "source": 2, "chosen": NONE},
        ),
        *(
            ([{**AT, "chosen": SEVERAL}, change, ROOM], {"step": 2, "source": 3, "chosen": chosen})
            for change, chosen in (
                ({"step": 2}, {**NONE, "together": "sum"}),  # a plain move is to one token alone
                ({"step": 2, "chosen": SEVERAL}, SEVERAL),
            )
        ),
    ],
    "cursor.sameCursor": [
        ([{**AT, "chosen": chosen}, {**AT, "chosen": SEVERAL}], chosen == SEVERAL)
        for chosen in (NONE, SEVERAL, {**SEVERAL, "together": "mean"}, {**SEVERAL, "steps": [1]})
    ],
    # from the end that stays to the token; the cursor is at the end that moves
    "together.ranged": [
        ([[], 3, 5], [3, 4, 5]),
        ([[], 3, 3], [3]),
        ([[], 3, 1], [1, 2, 3]),
        ([[3, 4, 5], 5, 6], [3, 4, 5, 6]),
        ([[3, 4, 5], 5, 1], [1, 2, 3]),
        ([[3, 4, 5], 3, 4], [4, 5]),
        ([[3, 4, 5], 3, 5], [5]),
        ([[1, 4], 4, 5], [1, 2, 3, 4, 5]),
    ],
    "together.toggled": [
        ([[], 3, [5]], [3, 5]),
        ([[], 3, [0, 1]], [0, 1, 3]),  # a chip of two pieces
        ([[], 3, [3]], [3]),
        ([[3, 5], 5, [5]], [3]),
        ([[3, 5], 5, [4]], [3, 4, 5]),
        ([[0, 1, 3], 3, [0, 1]], [3]),
    ],
    "together.rowsOf": [
        ([WINDOW, [16, 17]], [0, 1]),
        ([WINDOW, [16, 17, 18, 19]], [0, 1]),  # a word is one row, however many of its pieces
        ([WINDOW, [17, 19]], []),
        ([WINDOW, [3, 16, 20, 21, 99]], [0, 2]),  # others lie outside, or are hidden
        ([WINDOW, [3, 16]], []),
        *(([WINDOW, tokens], []) for tokens in ([], [16])),
        ([[], [0, 1]], []),
    ],
    "together.runs": [
        ([[]], []),
        ([[3]], [[3, 1]]),
        ([[0, 1, 2, 5, 7, 8]], [[0, 3], [5, 1], [7, 2]]),
    ],
    "together.told": [
        (
            [[0.1, 0.6, 0], ["a", "b", "c"], ["x", "y"], "mean", "weight"],
            ["The mean of 2 rows: ", "x", ", ", "y", ". It is largest at ", "b", ": weight 0.60."],
        ),
        (
            [[0.5, 1.25], ["a", "b"], ["x", "y"], "sum", "weight"],
            [
                *("The sum of 2 rows: ", "x", ", ", "y", ". It is largest at ", "b"),
                ": weight 1.25 of 1.75.",
            ],
        ),
        (
            [[0, 0], ["a", "b"], ["x", "y"], "mean", "weight"],
            ["The mean of 2 rows: ", "x", ", ", "y", ". It is 0 at every key."],
        ),
    ],
    "together.toldOfKeys": [
        ([[0.1, 0.4], ["a", "b"], how, "weight"], [" On 2 keys, ", "a", ", ", "b", f": {ends}."])
        for how, ends in (("sum", "weight 0.50 in sum"), ("mean", "weight 0.25 on average"))
    ],
    "together.continued": [
        ([["a", "b", "c"], [" d", "e", "f"]], ["a", "b", "c d", "e", "f"]),
        ([["a"], []], ["a"]),
    ],
    "cursor.heard": [
        heard(7, TOLD, True),
        heard(7, TOLD, False, at=TOLD),
        heard(6, ASKED, False),
        heard(7, ASKED, False, busy=True),
        heard(0, TOLD, True, trace="other", busy=True),
    ],
    "cursor.unheard": [
        unheard(6, True),
        unheard(7, True, untold=True),
        unheard(7, False),
        unheard(8, False, untold=True),
        unheard(6, False, trace="other"),
    ],
    # the source follows the step until one is chosen
    "cursor.sourceAt": [
        *(
            ([{"step": step, "source": source}, FOLLOW], position)
            for (step, source), position in {
                **{(0, None): 2, (2, None): 5, (9, None): 5, (-1, None): 2},
                **{(1, 0): 0, (1, 4): 4},
            }.items()
        ),
        ([{"step": 3, "source": None}, []], 0),
    ],
    "cursor.destination": [
        *(([asked, 2, 5], to) for asked, to in {"back": 1, "on": 3, "first": 0, "last": 4}.items()),
        (["back", 0, 5], -1),  # `moved` keeps it inside
        (["play", 0, 5], None),
    ],
    "cursor.nextColumn": [
        ([None, 1, 6], 0),
        ([None, -1, 6], 5),
        ([5, 1, 6], 6),
        ([0, -1, 6], -1),
    ],
    "cursor.playFrom": [
        *(([step, None, 4], 0) for step in (0, 3, 4)),
        *(([step, 3, 4], to) for step, to in {2: 0, 3: 4, 4: 0}.items()),
        ([4, 4, 4], 0),
        ([0, 0, 0], 0),
    ],
    "cursor.picked": [
        picked(CROSS, [5, 6], [2, 4], None, {"step": 5, "source": 2}),
        picked(CROSS, [2, 4], [2, 4], 3, {}),
        picked(CROSS, None, [0, 1], None, {"source": 0}),
        picked(CROSS, [5, 6], None, None, {"step": 5}),
        picked(OWN, [5, 6], [2, 4], None, {"source": 5}),
        picked(OWN, None, [2, 4], None, {}),
    ],
    "spans.holding": [
        *(
            ([WINDOW, token], at)
            for token, at in {15: -1, 16: 0, 17: 1, 19: 1, 20: -1, 21: 2, 22: -1, None: -1}.items()
        ),
        ([[], 0], -1),
    ],
    "spans.reached": [
        *(
            ([WINDOW, token], at)
            for token, at in {15: -1, 16: 0, 17: 1, 19: 1, 20: 1, 21: 2, 22: 2, None: -1}.items()
        ),
        ([[], 0], -1),
    ],
    "spans.whole": [([WINDOW], [16, 22]), ([[[0, 1]]], [0, 1])],
    "spans.pointed": [
        ([IN_CROSS, [17, 20], [1, 2]], {"step": [17, 20], "source": [1, 2]}),
        ([IN_OWN, [4, 5], [1, 2]], {"source": [4, 5]}),
        ([IN_OWN, None, [1, 2]], {"source": [1, 2]}),
    ],
    "spans.marked": [
        ([IN_CROSS, {"step": [17, 20], "source": [1, 2]}, False], {"row": 1, "column": 1}),
        ([IN_OWN, {"step": [17, 20], "source": [1, 2]}, False], {"row": 1, "column": -1}),
        ([IN_OWN, {"row": [0, 1], "column": [21, 22]}, True], {"row": 0, "column": 2}),
        ([IN_CROSS, {"source": [7, 8]}, False], {"row": -1, "column": -1}),
        ([IN_CROSS, None, False], {"row": -1, "column": -1}),
    ],
    "values.decode": [
        ([{"dtype": "f4", "bdata": "AAAAPwAAgD8="}], [0.5, 1]),
        ([{"dtype": "u1", "bdata": "AAH/"}], [0, 1, 255]),
        ([[0.25]], [0.25]),
        ([None], None),
    ],
    "text.filled": [
        ([ABOUT, NAMES, 0], "reads “<s>”, predicts “ein”"),
        ([ABOUT, NAMES, 1], "reads “ein”, predicts “$& {reads}”"),
        (["row of “{source}”", NAMES, 0], "row of “שלום”"),
        (["row of “{source}”", NAMES, 1], "row of “”"),
        (["{step} of {else}", NAMES, 0], "{step} of {else}"),
        (["", NAMES, 0], ""),
    ],
    "text.placeName": [
        (
            ["step", {"step": 1, "source": 0}, NAMES, POSITIONS],
            "Step 2: reads ein, predicts $& {reads}.",
        ),
        (["source", {"step": 1, "source": 0}, NAMES, POSITIONS], "Source token 1: שלום."),
        (
            ["step", {"step": 1, "source": 0}, {**NAMES, "predicts": []}, {"step": "token"}],
            "Token 2: reads ein.",
        ),
    ],
    "text.countName": [
        (["step", 0, 5], "step 1 of 5"),
        (["source token", 7, 8], "source token 8 of 8"),
    ],
    "text.plain": [
        ([labels.escape(text)], text)
        for text in ("", "<b>1 & 2</b> #3", "&lt;", "&amp;lt;", "שלום", "&#35;")
    ],
    "text.shortened": [
        (["a" * 13, 13], "a" * 13),
        (["a" * 14, 13], "a" * 12 + "…"),
        (["", 13], ""),
    ],
    "flow.curve": [([[10, 20], [50, 60]], "M10 20C10 40 50 40 50 60")],
    "enter.runs": [
        ([{"key": "Enter"}], True),
        ([{"key": "Enter", "shiftKey": True}], False),
        ([{"key": "Enter", "isComposing": True}], False),
        ([{"key": "e"}], False),
    ],
    "frame.scrolled": [
        ([place, 50, 100], to)
        for place, to in {50: 50, 150: 50, 0: 0, 49: 0, 60.5: 50, 151: 101}.items()
    ],
    "frame.nearestLine": [
        ([LINES, 0.25, 27, 7], LINES[0]),
        ([LINES, 0.25, 72, 7], LINES[1]),
        ([LINES, 0.25, 50, 7], None),
        ([LINES, 0, 7, 7], None),
        ([[], 0.5, 50, 7], None),
    ],
    "frame.shownPart": [
        ([EVERY, EVERY[:16]], [0.5, 16.5]),
        ([EVERY, EVERY[84:]], [84.5, 100.5]),
        ([WORDS, WORDS[1:]], [1.5, 3.5]),
    ],
    "frame.spanAt": [
        ([WORDS, at], span)
        for at, span in {-3: [0, 2], 0.6: [0, 2], 2.4: [2, 3], 9: [3, 7]}.items()
    ],
    "wall.sideOf": [
        *(([width, 9], side) for width, side in ((422, 35), (900, 72), (200, 34), (0, 34))),
        ([600, 16], 34),  # narrower tiles could not be read: then the box scrolls
    ],
    "wall.opacities": [([[0, 1, 255]], [0, 10, 255])],
    "fit.thinned": [([list("abcdefg"), 3], ["a", "d", "g"]), ([list("abc"), 1], list("abc"))],
    "axes.roundTicks": [
        ([ends, count], ticks)
        for low, high, count, ticks in (
            (0.5, 32.5, 8, [5, 10, 15, 20, 25, 30]),
            (0.5, 256.5, 6, [50, 100, 150, 200, 250]),
            (0.5, 3.5, 6, [1, 2, 3]),
        )
        for ends in ([low, high], [high, low])
    ],
    "colour.parts": [(["#0072B2"], [0, 114, 178, 1])],
    "colour.colourAt": [
        ([STOPS, 0], "rgba(0,0,0,0.000)"),
        ([STOPS, 0.25], "rgba(128,128,128,0.500)"),
        ([STOPS, 0.5], "rgba(255,0,0,1.000)"),
        ([STOPS, 1], "rgba(0,0,255,0.500)"),
    ],
    "sizes.margins": [([ROOMY, 700], ROOMY), ([ROOMY, 340], {"l": 100, "r": 66, "t": 4, "b": 22})],
    "sizes.size": [([None, 700, 0], 700), ([250, 700, 0], 250), ([None, 340, 600], 600)],
    "hover.number": [
        ([-1.234, ".2"], "−1.23"),
        ([3, None], "3"),
        *(([value, "+.1"], text) for value, text in {1.25: "+1.3", -1: "−1.0", 0: "+0.0"}.items()),
    ],
    "place.written": [
        ([PLACE, {"cross": [2, 4]}, 9], "#step=7&source=3&cross=3.5"),
        ([PLACE, {"encoder": [2, 4]}, 0], "#source=3&encoder=3.5"),
        (
            [{**PLACE, "chosen": SEVERAL}, {"cross": [2, 4]}, 9],
            "#step=7&source=3&steps=2-3&sources=1.5&together=sum&cross=3.5",
        ),
    ],
    "place.positions": [
        (["3-5.8", 9], [2, 3, 4, 7]),
        (["2.1", 9], [0, 1]),
        (["1-9", 9], [*range(9)]),
        *(
            ([text, 9], [])
            for text in (None, "", "4", "3-3", "5-3", "1-10", "0.1", "1..2", "1-2-3", "a.b")
        ),
    ],
    "place.placeIn": [
        *(
            (
                [f"#step=7&source=3&cross=3.5{more}", KINDS, STRIPS],
                {"heads": {"cross": [2, 4]}, "at": {**PLACE, "chosen": chosen}},
            )
            for more, chosen in (
                ("", NONE),
                (
                    "&steps=2-3&sources=1.3&together=sum",
                    {**SEVERAL, "sources": [0, 2]},
                ),
                ("&steps=2-99&sources=3&together=most", NONE),
            )
        ),
        *(([text, KINDS, STRIPS], {"heads": {}, "at": {}}) for text in NOWHERE),
        (  # without steps, the source token is the place
            ["#source=3&sources=1.3", KINDS, {**STRIPS, "steps": 0}],
            {
                "heads": {},
                "at": {"step": 0, "source": 2, "chosen": {**NONE, "sources": [0, 2]}},
            },
        ),
        (["#step=1", KINDS, {**STRIPS, "steps": 0}], {"heads": {}, "at": {}}),
    ],
}


@pytest.mark.parametrize("name", RETURNS)
def test_a_function_returns_what_it_says(call: Call, name: str) -> None:
    for arguments, expected in RETURNS[name]:
        assert call(name, *arguments) == expected, arguments


# --- laws, and what is read back -----------------------------------------------------------------


def test_keys_ask_for_what_the_label_of_the_view_says(call: Call) -> None:
    keys = {
        "ArrowLeft": "back",
        "ArrowRight": "on",
        "PageUp": "back",
        "PageDown": "on",
        "Home": "first",
    }
    keys |= {
        "End": "last",
        "ArrowUp": "key back",
        "ArrowDown": "key on",
        "Escape": "release",
        " ": "play",
    }
    every = {**keys, "p": "present", "?": "keys", **dict.fromkeys(("a", "Tab", "constructor"))}

    def asked(*more: object, **held: bool) -> dict[str, str | None]:
        return {key: call("cursor.command", {"key": key, **held}, *more) for key in every}

    assert asked() == every
    for modifier in ("altKey", "ctrlKey", "metaKey"):
        assert asked(**{modifier: True}) == dict.fromkeys(every), modifier
    for button in ("BUTTON", "SUMMARY"):
        assert asked(button) == {**every, " ": None}, button
    assert asked("SELECT") == {**dict.fromkeys(every), "Escape": "release"}


def test_keys_pressed_elsewhere_move_the_view_if_nothing_else_uses_them(call: Call) -> None:
    everything = {"back", "on", "keys", "present", "key on", "first", "play", "release"}

    def free(own: object, scrolls: bool) -> set[str]:
        return {
            asked
            for asked in everything
            if call("keys.free", asked, {"own": own, "scrolls": scrolls})
        }

    assert free(own=None, scrolls=False) == everything - {"release"}
    assert free(own=None, scrolls=True) == {"back", "on", "keys", "present"}
    assert free(own={}, scrolls=False) == set()


def test_the_strongest_come_first_and_the_others_are_added_up(call: Call) -> None:
    weights = {"a": 0.1, "b": 0, "c": 0.5, "d": 0.1, "e": 0.3}
    entries = [{"name": name, "weight": weight} for name, weight in weights.items()]
    found = call("values.strongest", entries, 2)
    assert [each["name"] for each in found["listed"]] == ["c", "e"]
    assert (found["more"], found["rest"]) == (2, pytest.approx(0.2))
    assert (
        "".join(each["name"] for each in call("values.strongest", entries, 9)["listed"]) == "cead"
    )
    assert call("values.strongest", [], 2) == {"listed": [], "more": 0, "rest": 0}


@pytest.mark.parametrize("together", ["mean", "sum"])
def test_a_row_that_stands_for_several_is_what_python_makes_of_them(call: Call, together: str):
    tokens = tuple("▁" + letter for letter in "abcdefghi")
    drawn = read_view(view("cross", tokens[:6], tokens, seed=3), Reading())
    weights = drawn.weights
    pairs = np.stack([weights, weights + 7], -1)  # beside each weight stands its score
    for rows in ([0, 1], [0, 2, 5], [*range(6)]):
        one = as_one(drawn, rows, together).weights[0]
        for values, channels in ((weights, 1), (pairs, 2)):
            cells = {"values": values.ravel().tolist(), "columns": 9, "channels": channels}
            found = call("together.joined", cells, rows, together)
            assert found == pytest.approx(one.tolist(), abs=1e-6)


@pytest.mark.parametrize("scale", style.SCALES)
def test_colours_of_a_joined_row_are_those_of_a_map(call: Call, scale: str):
    weights = (-0.5, 0.0, 1e-4, 0.01, 0.3, 1.0, 2.5)
    expected = style.strength(np.array(weights), scale).tolist()
    assert [call("values.strength", weight, scale) for weight in weights] == pytest.approx(expected)


def test_a_sentence_names_eight_tokens_and_counts_the_others(call: Call):
    names = list("abcdefghijk")
    *_, last = call("together.told", [0.5], ["k"], names, "mean", "weight")[:-2]
    assert last == " and 3 more. It is largest at "


def race(names: list[str], shares: list[float], **more: Any) -> dict[str, Any]:
    """What a view hears of the candidates of one step, of which the first is chosen."""
    told = {"names": [names], "shares": [[f"{100 * share:.0f} %" for share in shares]]}
    ids = [[*range(len(names))]]
    return {
        **told,
        "logs": list(map(math.log, shares)),
        "chosen": [0],
        "ids": ids,
        "tried": [[]],
        **more,
    }


def test_candidates_are_read_and_those_of_hardly_any_probability_are_one(call: Call) -> None:
    (first, second), *_ = call(
        "race.runners", race(["</s>", "a name of many letters"], [0.5, 0.25], tried=[[1]])
    )
    read = [first[each] for each in ("label", "name", "chosen", "text", "id", "tried")]
    assert read == ["</s>", "</s>", True, "50 %", 0, False]
    read = [second[each] for each in ("label", "name", "chosen", "text", "id", "tried")]
    assert read == ["a name of ma…", "a name of many letters", False, "25 %", 1, True]
    assert (first["share"], first["log"]) == (pytest.approx(0.5), pytest.approx(math.log(0.5)))
    (row,) = call(
        "race.runners", race([*"abcde"], [0.97, 0.02, 0.0005, 0.0004, 0.0003], tried=[[3]])
    )
    assert [each["label"] for each in row] == ["a", "b", "d", "others"]
    assert row[-1]["share"] == pytest.approx(1 - 0.97 - 0.02 - 0.0004)
    assert (row[-1]["text"], row[-1]["id"]) == ("1.0 %", None)
    (unnamed, *_), *_ = call("race.runners", race(["a"], [1.0], ids=[], tried=[]))
    assert (unnamed["id"], unnamed["tried"]) == (None, False)


def layout(rows: int, columns: int, **yaxis: object) -> dict[str, object]:
    """A layout with 100 by 200 px inside its margins, rows from top to bottom."""
    margin = {"l": 88, "t": 88, "r": 4, "b": 4}
    ranges = {
        "xaxis": {"range": [-0.5, columns - 0.5]},
        "yaxis": {"range": [rows - 0.5, -0.5], **yaxis},
    }
    return {"width": 192, "height": 292, "margin": margin, **ranges}


def test_places_follow_from_the_layout_and_cells_of_a_map_are_square(call: Call) -> None:
    axes = call("frame.axesOf", layout(4, 5))
    assert axes["across"] == {"offset": 88, "length": 100, "first": -0.5, "last": 4.5}
    assert axes["down"] == {"offset": 88, "length": 200, "first": -0.5, "last": 3.5}
    assert call("frame.along", axes["across"], 0) == 10
    assert call("frame.within", axes["down"], 3) == 88 + 175
    box = {"left": 0, "top": 50, "width": 100, "height": 50}
    assert call("frame.box", axes, [-0.5, 4.5], [0.5, 1.5]) == box
    for rows, columns in ((1, 1), (4, 5), (20, 5), (5, 64)):
        axes = call("frame.axesOf", layout(rows, columns, scaleanchor="x"))
        side = min(100 / columns, 200 / rows)
        drawn = [axes["across"]["length"] / columns, axes["down"]["length"] / rows]
        assert drawn == pytest.approx([side, side]), (rows, columns)


WIDEST = {"rows": 4.0, "columns": 3.0}
"""Widths of the widest labels, in multiples of the font size."""


def fitted(
    call: Call, rows: int, columns: int, room: tuple[float, float], **more: object
) -> dict[str, Any]:
    given = {
        "rows": rows,
        "columns": columns,
        "widest": WIDEST,
        "room": room,
        "smallest": 1,
        **more,
    }
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
        assert found["margin"]["l"] > WIDEST["rows"] * found["font"], case
        assert found["margin"]["t"] > WIDEST["columns"] * found["font"], case
    assert fitted(call, 2, 2, (900, 900), largest=84)["cell"] == 84
    assert fitted(call, 9, 9, (400, 400), right=76)["margin"]["r"] == 76


def test_cells_shrink_before_labels_are_left_out_and_scroll_last(call: Call) -> None:
    sizes = [
        fitted(call, count, count, (360, 360), smallest=6) for count in (6, 13, 20, 25, 40, 64)
    ]
    for each in ("cell", "font"):
        found = [size[each] for size in sizes]
        assert found == sorted(found, reverse=True)
    assert [each["scrolls"] for each in sizes] == [False] * 5 + [True]
    assert [each["every"] for each in sizes[:4]] == [1] * 4
    assert sizes[-1]["cell"] == 6
    assert sizes[-1]["size"][0] > 360


def test_a_title_is_shortened_at_its_seams(scripts_alone: Any) -> None:
    title = "queries: decoder, layer 2 (token predicted)"
    script = f"""([title, room]) => import('/{VIEW}/fit.js')
      .then(fit => fit.titleFor(title, room, (text) => text.length))"""
    for room, found in {99: title, 43: title, 30: title[:25], 10: "queries", 2: "queries"}.items():
        assert scripts_alone.evaluate(script, [title, room]) == found


def test_the_pictures_fill_what_the_window_leaves(scripts_alone: Any) -> None:
    """The large map takes at most the width that its height allows, as maps of square cells do."""
    script = f"""([width, height]) => import('/{VIEW}/fit.js').then(({{ spread }}) => spread({{
      width, height, gap: 18, bars: [170, 150], around: 70,
      measure: ([wide, high]) => Math.min(wide, high + 30),
    }}))"""
    layouts = {
        (1120, 470): "over",
        (990, 300): "beside",
        (1440, 740): "over",
        (1440, 400): "beside",
    }
    for (width, height), layout in {**layouts, (800, 330): "square", (640, 300): "square"}.items():
        found = scripts_alone.evaluate(script, [width, height])
        (side, high) = found["side"]
        (bars, tall) = found["next"]
        main = found["main"]
        case = f"{width} × {height}: {found}"
        across = {
            "over": [main, side, side],
            "beside": [main, side, side, bars],
            "square": [main, side],
        }
        columns = across[layout]
        assert found["layout"] == layout, case
        assert sum(columns) + 18 * (len(columns) - 1) <= width + 1e-6, case
        assert side >= 220, case
        if layout != "square":
            assert high + 70 + (18 + tall if layout == "over" else 0) <= height + 1e-6, case
            assert min(side, high) <= main, case
            assert bars >= 170, case


def test_names_in_a_csv_file_are_quoted_and_no_formulas(call: Call) -> None:
    text = call("numbers.csv", TABLE, ["0.500", "1.000"])
    assert text[0] == "\ufeff"
    assert list(csv.reader(text[1:].splitlines())) == [
        ["", "x,y"],
        ['a"b', "0.500"],
        ["'=1+1", "1.000"],
    ]


def test_tiles_are_pooled_as_in_python(call: Call) -> None:
    values = np.random.default_rng(0).integers(0, 256, (9, 5), np.uint8)
    for most in (3, 5, 9):
        found = call("heads.pooled", values.ravel().tolist(), [9, 5], most)
        expected = pool(values, most)[0]
        assert [found["high"], found["wide"]] == list(expected.shape)
        assert found["cells"] == expected.ravel().tolist()


GLOSSARY = {
    "head": {"written": ["head"]},
    "induction head": {"written": ["induction head", "induction heads"]},
    **{each: {"written": [each]} for each in ("KL", "</s>", "σ")},
}


def test_a_word_is_found_once_where_it_is_used_first_and_of_two_the_longer_is_meant(
    call: Call,
) -> None:
    def found(*texts: str) -> list[tuple[str, int, str]]:
        """Word, number of the text, and what stands there, of each first use."""
        uses = call("words.firstUses", list(texts), GLOSSARY)
        return [
            (use["word"], use["text"], texts[use["text"]][use["start"] : use["end"]])
            for use in uses
        ]

    assert found("Heads", "a head", "Head 3, and head 4") == [("head", 1, "head")]
    assert found("ahead of kl, Σ of all") == []
    assert found("it rests on </s>.", "KL of two") == [("KL", 1, "KL"), ("</s>", 0, "</s>")]
    assert found("An induction head looks back.") == [("induction head", 0, "induction head")]


def test_a_word_has_the_meaning_of_its_page(call: Call) -> None:
    model, weight = "weight of a model", "weight"
    glossary = {
        model: {"written": [weight], "on": ["training", "findings/adam"]},
        weight: {"written": [weight, "weights"]},
        "head": {"written": ["head"]},
    }
    meant = {"/training?view=loss": model, "/findings?study=adam": model, "/": weight}
    for address, word in {**meant, "/findings?study=en-pt/importance": weight}.items():
        pathname, _, search = address.partition("?")
        found = call("words.meant", glossary, {"pathname": pathname, "search": search})
        assert list(found) == [word, "head"], address
