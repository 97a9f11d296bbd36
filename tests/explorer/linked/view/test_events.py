from __future__ import annotations

import json

import pytest

from explorer.linked.view import (
    EXAMPLE,
    Cursor,
    CursorRange,
    Gloss,
    picked_candidate,
    picked_head,
    reduce,
    window_around,
)
from explorer.linked.view.strips import chips, direction

LIMITS = CursorRange("abc", steps=5, sources=4)
EVENT = {"trace": "abc", "step": 2, "source": None, "seq": 7}


def test_an_event_moves_the_cursor():
    assert reduce(Cursor(0, 1, 6), EVENT, LIMITS) == Cursor(2, None, 7)


def test_a_candidate_is_a_step_and_a_token_of_this_translation():
    assert picked_candidate({**EVENT, "candidate": [4, 17]}, LIMITS) == (4, 17)
    assert picked_candidate({**EVENT, "candidate": [4, 17], "trace": "old"}, LIMITS) is None


@pytest.mark.parametrize(
    "chosen", [None, 3, [1], [5, 0], [-1, 0], [1, -1], [1, True], [1, 2.0], ["1", 2], [1, 2, 3]]
)
def test_a_malformed_candidate_is_none(chosen: object):
    assert picked_candidate({**EVENT, "candidate": chosen}, LIMITS) is None


@pytest.mark.parametrize("seq", [7, 6, -1])
def test_a_late_event_changes_nothing(seq: int):
    before = Cursor(1, None, 7)
    assert reduce(before, {**EVENT, "seq": seq}, LIMITS) == before


def test_an_event_of_another_translation_is_acknowledged_only():
    assert reduce(Cursor(1, 3, 0), {**EVENT, "trace": "old"}, LIMITS) == Cursor(1, 3, 7)


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        "x",
        {},
        {"seq": "7"},
        {"seq": True, "step": 1},
        {"seq": float("nan"), "step": 1, "trace": "abc"},
    ],
)
def test_a_malformed_event_changes_nothing(event: object):
    assert reduce(Cursor(1, 3, 2), event, LIMITS) == Cursor(1, 3, 2)


@pytest.mark.parametrize(("step", "shown"), [(99, 4), (-3, 0), (2.0, 2)])
def test_positions_are_kept_inside_the_sentence(step: float, shown: int):
    assert reduce(Cursor(), {**EVENT, "step": step}, LIMITS).step == shown


@pytest.mark.parametrize("step", ["2", None, True, float("nan")])
def test_positions_that_are_no_numbers_move_nothing(step: object):
    assert reduce(Cursor(1), {**EVENT, "step": step}, LIMITS).step == 1


def test_a_click_on_a_tile_picks_a_head_inside_the_model():
    sizes = {"cross": (3, 8)}
    assert picked_head({**EVENT, "head": ["cross", 1, 99]}, LIMITS, sizes) == {"cross": (1, 7)}
    for head in (None, ["other", 0, 0], ["cross", 0], ["cross", "0", 0]):
        assert picked_head({**EVENT, "head": head}, LIMITS, sizes) == {}


def test_the_bytes_of_a_character_are_one_chip():
    pieces = ("▁hi", "▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "</s>")
    made = chips(pieces)
    assert [chip["text"] for chip in made] == ["hi", "◦", "😀", "</s>"]
    assert (made[2]["first"], made[2]["last"]) == (2, 5)


def test_chips_have_gaps_before_words_and_indices_for_repeats():
    mice: Gloss = {"text": "mice", "origin": EXAMPLE}
    made = chips(("▁die", "▁Mäu", "se", ",", "▁die", "</s>"), {1: mice})
    assert [chip["gap"] for chip in made] == [True, True, False, False, True, True]
    assert [chip["index"] for chip in made] == [1, None, None, None, 2, None]
    assert [chip["gloss"] for chip in made] == [None, mice, None, None, None, None]
    assert made[-1]["special"]
    assert json.dumps(made)


def test_right_to_left_text_runs_right_to_left():
    assert direction(["▁שלום", "</s>"]) == "rtl"
    assert direction(["▁hello"]) == "ltr"


@pytest.mark.parametrize("length", [1, 64, 65, 96, 97, 1024])
def test_a_window_always_holds_its_position(length: int):
    for position in range(length):
        start, stop = window_around(length, position)
        assert 0 <= start <= position < stop <= length
        assert stop - start == min(length, 64)


def test_a_window_moves_only_every_32_tokens():
    assert len({window_around(1000, position) for position in range(1000)}) <= 1000 // 32 + 1
