"""The linked view: what an event moves, what feeds say, and how tokens become chips."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from explorer.figures import next_token_spec
from explorer.figures.base import labels, style
from explorer.figures.base.bars import SHOWN
from explorer.figures.maps.heatmap import MASKED, heatmap
from explorer.lenses.words.reading import Reading, ReadView, read_view
from explorer.linked.view.events import Cursor, CursorRange, picked_candidate, picked_head, reduce
from explorer.linked.view.feeds import (
    Draw,
    bars_feed,
    is_off,
    lines_feed,
    map_feed,
    strongest_feed,
    window_around,
)
from explorer.linked.view.strips import EXAMPLE, chips, direction, shaded
from transformer import Translator
from transformer import interventions as do

LIMITS = CursorRange("abc", steps=5, sources=4)
EVENT = {"trace": "abc", "step": 2, "source": None, "seq": 7}
BEFORE = Cursor(1, 3, 2)


@pytest.mark.parametrize(
    ("event", "after"),
    [
        (EVENT, Cursor(2, None, 7)),
        (EVENT | {"source": 3}, Cursor(2, 3, 7)),
        (EVENT | {"source": 9}, Cursor(2, 3, 7)),  # positions are kept inside the sentence
        (EVENT | {"step": 99}, Cursor(4, None, 7)),
        (EVENT | {"step": -3}, Cursor(0, None, 7)),
        (EVENT | {"step": 2.0}, Cursor(2, None, 7)),
        *((EVENT | {"step": step}, Cursor(1, 3, 7)) for step in ("2", None, True, math.nan)),
        (EVENT | {"trace": "old"}, Cursor(1, 3, 7)),  # that of another run is acknowledged only
        *((EVENT | {"seq": seq}, BEFORE) for seq in (2, 1, -1, "7", True, math.nan)),
        *((event, BEFORE) for event in (None, [], "x", {}, {"seq": "7"})),
    ],
)
def test_an_event_of_this_run_moves_the_cursor_and_a_late_or_malformed_one_does_not(event, after):
    assert reduce(BEFORE, event, LIMITS) == after


@pytest.mark.parametrize(
    ("chosen", "candidate"),
    [
        ([4, 17], (4, 17)),
        ([0, 0], (0, 0)),
        *(
            (each, None)
            for each in (None, 3, [1], [5, 0], [-1, 0], [1, -1], [1, True], [1, 2.0], ["1", 2], [1, 2, 3])
        ),
    ],
)
def test_a_candidate_is_a_step_and_a_token_of_this_translation(chosen, candidate):
    assert picked_candidate({**EVENT, "candidate": chosen}, LIMITS) == candidate
    assert picked_candidate({**EVENT, "candidate": chosen, "trace": "old"}, LIMITS) is None


@pytest.mark.parametrize(
    ("head", "picked"),
    [
        (["cross", 1, 99], {"cross": (1, 7)}),
        (["cross", 9, 0], {"cross": (2, 0)}),
        *((each, {}) for each in (None, ["other", 0, 0], ["cross", 0], ["cross", "0", 0])),
    ],
)
def test_a_click_on_a_tile_picks_a_head_inside_the_model(head: Any, picked: dict[str, tuple[int, int]]):
    assert picked_head({**EVENT, "head": head}, LIMITS, {"cross": (3, 8)}) == picked


@pytest.mark.parametrize("length", [1, 64, 65, 96, 97, 1024])
def test_a_window_holds_its_position_and_moves_only_every_32_tokens(length: int):
    found = [window_around(length, position) for position in range(length)]
    assert all(0 <= start <= at < stop <= length for at, (start, stop) in enumerate(found))
    assert {stop - start for start, stop in found} == {min(length, 64)}
    assert len({*found}) <= length // 32 + 1


def test_chips_join_the_bytes_of_a_character_have_gaps_before_words_and_indices_for_repeats():
    gloss = {"text": "mice", "origin": EXAMPLE}
    pieces = ("▁die", "▁Mäu", "se", ",", "▁die", "▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "</s>")
    made = chips(pieces, {1: gloss})  # type: ignore[dict-item]
    assert json.dumps(made)
    names = ("text", "first", "last", "gap", "index", "gloss", "special")
    assert [tuple(chip[name] for name in names) for chip in made] == [  # type: ignore[literal-required]
        ("die", 0, 0, True, 1, None, False),
        ("Mäu", 1, 1, True, None, gloss, False),
        ("‿se", 2, 2, False, None, None, False),
        (",", 3, 3, False, None, None, False),
        ("die", 4, 4, True, 2, None, False),
        ("◦", 5, 5, True, None, None, False),
        ("😀", 6, 9, False, None, None, False),
        ("</s>", 10, 10, True, None, None, True),
    ]
    assert [direction(["▁שלום", "</s>"]), direction(["▁hello"])] == ["rtl", "ltr"]


def test_a_chip_has_the_shade_and_the_number_of_its_darkest_token_and_tells_of_all():
    made = chips(("▁a", "<0xC3>", "<0xA9>"))
    shades = [
        {"share": 0.25, "text": "one"},
        {"share": 0.5, "text": "two", "number": "2"},
        {"share": 0.75, "text": "three", "number": "3"},
    ]
    found = shaded(made, shades)  # type: ignore[arg-type]
    assert [(each["text"], each["shade"], each["gloss"], each["title"]) for each in found] == [
        ("a", 0.25, None, "one"),
        ("‿é", 0.75, "3", "two + three"),
    ]


# --- feeds --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def view(solved: Translator) -> ReadView:
    return read_view(solved.translate("one two three").head("decoder", 0, 0), Reading())


def test_a_feed_says_how_it_is_drawn_and_every_way_has_its_class_in_the_script(view: ReadView, solved):
    bars = bars_feed("abc", next_token_spec(solved.translate("one").steps), "step", "", "", "", [])
    feeds = [map_feed("abc", view), lines_feed("abc", [view], [[]], ""), strongest_feed("abc", view), bars]
    assert [feed["draw"] for feed in feeds] == ["map", "lines", "strongest", "bars"]
    script = next((Path(__file__).parents[3] / "static").glob("linked_view-*/view.js"))
    table = re.search(r"const CLASSES = \{(.*?)\};", script.read_text(encoding="utf-8"), re.S)
    assert table is not None
    assert {*re.findall(r"(\w+):", table[1])} == {*get_args(Draw)} - {"strips"}
    both = lines_feed("abc", [view, replace(view, head=1, weights=view.weights[::-1])], [[], []], "all links")
    assert both["values"] == style.packed(view.weights)
    assert both["title"] == f"{feeds[1]['title']} with L1 H2"
    assert both["caption"] == f"{feeds[1]['caption'].partition(' · ,')[0]} · all links, thickness = weight"
    assert feeds[2]["listed"] == SHOWN, "lists on the screen are as long as printed ones"


def test_the_parts_of_a_hover_text_make_the_text_of_the_plain_figure_and_are_escaped(view: ReadView):
    feed = map_feed("abc", view)
    hover = feed["hover"]
    made = tuple(
        tuple(
            f"{row}, {column}{'' if seen else hover['masked']}"
            for column, seen in zip(hover["columns"], line, strict=True)
        )
        for row, line in zip(hover["rows"], view.mask, strict=True)
    )
    assert made == tuple(map(tuple, heatmap(view).data[0].text))
    assert sum(text.endswith(MASKED) for line in made for text in line) == int((~view.mask).sum())
    assert any("<" in name for name in feed["names"]["rows"])
    assert hover["rows"] == [labels.escape(name) for name in feed["names"]["rows"]]
    assert "meta" not in json.loads(feed["figure"])["layout"]


@pytest.mark.parametrize(
    ("change", "off"),
    [
        (do.ablate("cross", 1, 2), True),
        (do.ablate("cross", 1), True),
        (do.ablate("cross", 1, 2, by="uniform"), False),
        (do.ablate("cross", 1, 2, rows=(0,)), False),
        (do.ablate("cross", 0, 2), False),
        (do.ablate("encoder", 1, 2), False),
    ],
)
def test_a_head_is_off_if_its_output_is_zero_in_every_row(translator, change, off: bool):
    run = translator.translate("one two", max_length=3, interventions=[change])
    assert is_off(run, "cross", (1, 2)) is off
