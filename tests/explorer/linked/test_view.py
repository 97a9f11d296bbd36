"""The linked view: what an event moves, windows, shaded chips, and heads that are off."""

import math
from typing import Any

import pytest
from head_views import view

from explorer.lenses.words.reading import Reading, read_view
from explorer.linked.view.events import (
    Chosen,
    Cursor,
    CursorRange,
    picked_candidate,
    picked_head,
    reduce,
)
from explorer.linked.view.feeds import is_off, map_feed, window_around
from explorer.linked.view.strips import chips, direction, shaded
from transformer import interventions as do

LIMITS = CursorRange("abc", steps=5, sources=4)
EVENT = {"trace": "abc", "step": 2, "source": None, "seq": 7}
BEFORE = Cursor(1, 3, 2)
ESCAPED = ("&lt;b&gt;x", "&amp;amp;", "&#35;000001", "&lt;/s&gt;")


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


NO_CHOICES: tuple[object, ...] = (None, 3, "1", [0, 1], {}, {"steps": None}, {"steps": "01"})
NO_POSITIONS: tuple[list[object], ...] = ([], [1], [1, 1], [-1, 9], [0, 2.0], [0, True], [0, "1"])


@pytest.mark.parametrize(
    ("told", "chosen"),
    [
        ({"steps": [3, 0, 3, 99, -1]}, Chosen(steps=(0, 3))),  # those that the text has, in order
        ({"steps": [*range(50)]}, Chosen(steps=(0, 1, 2, 3, 4))),
        ({"sources": [3, 2], "together": "sum"}, Chosen(sources=(2, 3), together="sum")),
        ({"steps": [0, 1], "sources": [0, 3]}, Chosen((0, 1), (0, 3))),
        *(({"steps": [0, 1], "together": how}, Chosen((0, 1))) for how in ("most", None, ["sum"])),
        *(({"steps": positions}, Chosen()) for positions in NO_POSITIONS),
        *((told, Chosen()) for told in NO_CHOICES),
    ],
)
def test_an_event_chooses_several_tokens_of_the_text_and_one_alone_is_no_choice(told, chosen):
    assert reduce(BEFORE, EVENT | {"chosen": told}, LIMITS).chosen == chosen
    late = EVENT | {"chosen": told, "seq": 1}
    assert reduce(BEFORE, late, LIMITS).chosen == Chosen()


@pytest.mark.parametrize(
    ("chosen", "candidate"),
    [
        ([4, 17], (4, 17)),
        ([0, 0], (0, 0)),
        *(
            (each, None)
            for each in (
                None,
                3,
                [1],
                [5, 0],
                [-1, 0],
                [1, -1],
                [1, True],
                [1, 2.0],
                ["1", 2],
                [1, 2, 3],
            )
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
def test_a_click_on_a_tile_picks_a_head_inside_the_model(
    head: Any, picked: dict[str, tuple[int, int]]
):
    assert picked_head({**EVENT, "head": head}, LIMITS, {"cross": (3, 8)}) == picked


@pytest.mark.parametrize("length", [1, 64, 65, 96, 97, 1024])
def test_a_window_holds_its_position_and_moves_only_every_32_tokens(length: int):
    found = [window_around(length, position) for position in range(length)]
    assert all(0 <= start <= at < stop <= length for at, (start, stop) in enumerate(found))
    assert {stop - start for start, stop in found} == {min(length, 64)}
    assert len({*found}) <= length // 32 + 1


def test_a_strip_runs_as_most_of_its_letters_do_and_a_chip_is_as_dark_as_its_darkest_token():
    assert [direction(["▁שלום", "</s>"]), direction(["▁hello"])] == ["rtl", "ltr"]
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


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_names_under_the_pointer_are_no_markup(kind: str):
    tokens = ("<b>x", "&amp;", "#000001", "</s>")
    predicted = {"predicted_tokens": tokens} if kind == "cross" else {}
    head = view(kind, tokens, tokens, **predicted)
    hover = map_feed("abc", read_view(head, Reading()))["hover"]
    for side in ("rows", "columns"):
        assert len(hover[side]) == len(tokens)
        for name, told in zip(ESCAPED, hover[side], strict=True):
            assert name in told
