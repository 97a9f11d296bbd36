"""The page What if: what it says that changes did, its list of changes, and what a click adds."""

from __future__ import annotations

import re
from typing import Any

import pytest
from app_pages import charts, run, said, words
from streamlit.testing.v1 import AppTest

from explorer.app.server import models
from explorer.lenses import compare_runs
from explorer.lenses.what_if.controls import random_heads
from transformer import interventions as do

PAGE = "pages/what_if.py"
TEXT = "one two three four"
CHANGES = {
    "head": do.ablate("cross", 0, 0, "zero"),
    "hidden word": do.hide(1),
    "no positions": do.no_positions("encoder"),
    "sub-layer": do.drop_sublayer("decoder", 0, "feed_forward"),
    "token": do.choose(0, "▁drei"),
}
HEAD, WORD = do.scale("cross", 0, 1, 3.0), do.hide(0)


def opened(*changes: do.Intervention, **params: str) -> AppTest:
    more = {"changes": do.write_text(changes)} if changes else {}
    return run(PAGE, **{"model": "random", "text": TEXT, **more, **params})


def bars(at: AppTest, height: int = 0) -> list[float]:
    found = [trace for chart in charts(at) for trace in chart["data"] if trace["type"] == "bar"]
    return list(found[height]["x"])


def click(at: AppTest, key: str) -> AppTest:
    return at.button(key).click().run()


def words_of(at: AppTest) -> Any:
    """The words that a click hides."""
    return next(each for each in at.get("button_group") if each.label.startswith("Click a word"))


def active(at: AppTest) -> list[do.Intervention]:
    return list(do.read_text(at.query_params["changes"])) if "changes" in at.query_params else []


def test_without_a_change_the_page_shows_the_translation_and_what_to_click():
    at = opened()
    assert models.find("random").translator().translate(TEXT).text in words(at).replace("\\", "")
    assert words_of(at)
    assert not charts(at)


@pytest.mark.parametrize("name", CHANGES)
def test_the_bars_are_the_differences_of_two_forced_runs(name: str):
    change = CHANGES[name]
    at = opened(change)
    translator = models.find("random").translator()
    base = translator.translate(TEXT)
    if isinstance(change, do.Choose):
        expected = compare_runs(base, translator.translate(TEXT, interventions=[change])).delta_log_p
    else:
        forced = translator.force(TEXT, base.target_ids, interventions=[change])
        expected = [b - a for a, b in zip(base.log_probs, forced.log_probs, strict=True)]
    assert bars(at) == pytest.approx(list(expected), abs=1e-5)


def test_both_translations_stand_there_and_the_step_at_which_they_part():
    change = CHANGES["token"]
    at = opened(change)
    translator = models.find("random").translator()
    found = compare_runs(translator.translate(TEXT), translator.translate(TEXT, interventions=[change]))
    assert found.parting == 0
    assert "The translations part at step 1." in words(at)


def test_a_tiny_change_is_told_with_the_digits_that_it_needs():
    told = words(opened(do.scale("cross", 0, 0, 1.0005))).replace("\\", "")
    assert re.search(r"Σ\|Δ\| 0\.00*[1-9] nats", told)
    assert "+0.00 nats" not in told
    assert not re.search(r"= 0\.0+ nats", told)


# --- the list -----------------------------------------------------------------------------------------------


def test_a_change_is_switched_off_without_losing_it_and_on_again_in_its_place():
    at = opened(WORD, HEAD)
    at.checkbox[0].uncheck().run()
    assert active(at) == [HEAD]
    assert at.query_params["off"] == "1.hide_1"
    assert "(off)" in at.checkbox[0].label
    again = run(PAGE, model="random", text=TEXT, changes=at.query_params["changes"], off="1.hide_1")
    assert [each.value for each in again.checkbox] == [False, True]
    again.checkbox[0].check().run()
    assert active(again) == [WORD, HEAD]
    assert "off" not in again.query_params


def test_a_change_that_is_switched_off_changes_nothing():
    assert bars(opened(HEAD, off="1.hide_1")) == bars(opened(HEAD))


def test_each_change_is_named_by_what_it_says():
    at = opened(WORD, HEAD)
    named = [each.label.replace("\\", "") for each in at.checkbox]
    assert named == [
        "source token 1, “one”, is hidden from cross-attention",
        "cross-attention, layer 1, head 2 times 3",
    ]


def test_a_change_is_taken_out_whether_it_acts_or_not():
    at = click(opened(HEAD, off="1.hide_1"), "changed.0")
    assert "off" not in at.query_params
    assert active(at) == [HEAD]
    assert active(click(at, "changed.0")) == []


def test_all_changes_are_taken_out_at_once():
    at = click(opened(HEAD, off="1.hide_1"), "changed.none")
    assert "off" not in at.query_params
    assert active(at) == []


def test_a_change_that_is_refused_says_why_and_can_be_switched_off():
    at = opened(do.ablate("cross", 8, 0, "zero"), HEAD)
    assert "There is no layer 9" in said(at)
    at.checkbox[0].uncheck().run()
    assert "There is no layer 9" not in said(at)
    assert active(at) == [HEAD]


# --- clicks -------------------------------------------------------------------------------------------------


def test_a_click_on_a_word_hides_it_and_another_click_shows_it_again():
    at = opened(HEAD)
    words_of(at).set_value([1]).run()
    assert active(at) == [HEAD, do.hide(1)]
    words_of(at).set_value([]).run()
    assert active(at) == [HEAD]


def test_a_long_sentence_offers_its_first_words_and_keeps_what_is_hidden_behind_them():
    far = do.hide(70)
    at = opened(far, text=" ".join(["one", "two"] * 60))
    words_of(at).set_value([1]).run()
    assert active(at) == [far, do.hide(1)]
    assert "The first 64 tokens" in words(at)


def test_the_chosen_head_is_switched_off_with_one_click_and_on_again():
    at = click(opened(WORD, kind="decoder", decoder="2.3"), "what-if.switch")
    assert active(at) == [WORD, do.ablate("decoder", 1, 2)]
    assert "on again" in at.button("what-if.switch").label
    assert active(click(at, "what-if.switch")) == [WORD]


def test_the_chosen_cell_can_take_its_row_s_weight_or_be_hidden():
    params = {"kind": "cross", "cross": "2.1", "step": "2", "source": "3"}
    moved = click(opened(WORD, **params), "what-if.move")
    assert not moved.exception
    assert active(moved)[1] == do.set_row("cross", 1, 0, 1, {2: 1.0})
    assert (moved.query_params["step"], moved.query_params["source"]) == ("2", "3")
    masked = click(opened(WORD, **params), "what-if.mask")
    assert active(masked)[1] == do.mask("cross", forbid=[(1, 2)], layer=1)


def test_a_cell_that_the_mask_hides_offers_nothing():
    at = opened(WORD, kind="decoder", step="1", key="2")
    assert "the mask hides this cell" in words(at)
    assert "what-if.move" not in [each.key for each in at.button]


# --- the control --------------------------------------------------------------------------------------------


def test_a_change_of_a_head_stands_among_the_same_change_at_other_heads():
    at = opened(WORD, HEAD)
    translator = models.find("random").translator()
    base = translator.translate(TEXT)
    expected = random_heads(translator, TEXT, base.target_ids, HEAD, [WORD])
    (chart,) = [each for each in charts(at) if len(each["data"]) == 2 and each["data"][0]["type"] == "bar"]
    assert chart["data"][0]["x"] == pytest.approx([expected.effect])
    assert chart["data"][1]["x"] == pytest.approx(expected.effects)
    assert f"{expected.as_large} of 3 move it as far" in words(at)
    assert "all 3 others" in words(at)
    assert "beside the other change" in words(at)


def test_a_change_of_no_head_has_no_such_control():
    assert "The same change at other heads" not in words(opened(WORD))


def test_a_change_of_every_head_says_why_there_is_no_control():
    assert "There is no control" in words(opened(do.ablate("cross", 0))).replace("\\", "")


def test_tiles_of_small_changes_read_what_their_colours_say():
    at = opened(do.scale("cross", 0, 1, 0.999), kind="decoder")
    (tiles,) = (
        each
        for each in charts(at)
        if {"H1", "H2"} <= set(each["layout"].get("xaxis", {}).get("ticktext", ()))
    )
    texts = [each["text"] for each in tiles["layout"]["annotations"]]
    assert any(text.startswith("0.0") for text in texts)
    assert not any(text.startswith("0.00<") or text == "0.00" for text in texts)
