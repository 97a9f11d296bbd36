"""Every sort of change that the page What if can add, and what it says of values that do not fit."""

from __future__ import annotations

import pytest
from app_pages import run, words
from streamlit.testing.v1 import AppTest

from explorer.app.server import models
from transformer import interventions as do

PAGE = "pages/what_if.py"
TEXT = "one two three four"
HEAD = (2, 2)
"""The head of cross-attention that the page opens with."""
SORTS = {
    ("Tokens", 1): do.DropSource,
    ("Tokens", 2): do.Choose,
    ("Tokens", 3): do.Forbid,
    ("Heads", 0): do.Ablate,
    ("Heads", 1): do.Scale,
    ("Attention", 0): do.SetRow,
    ("Attention", 1): do.Mask,
    ("Arithmetic", 0): do.Temperature,
    ("Arithmetic", 1): do.Unscaled,
    ("Arithmetic", 2): do.NoPositions,
    ("Arithmetic", 3): do.DropSublayer,
    ("Arithmetic", 4): do.DropNorm,
}


def opened(group: str, sort: int, **params: str) -> AppTest:
    at = run(PAGE, **{"model": "random", "text": TEXT, **params})
    at.segmented_control(key="what-if.group").set_value(group).run()
    return at if sort == 0 else choose(at, "Change", sort)


def choose(at: AppTest, label: str, value: object) -> AppTest:
    return next(box for box in at.selectbox if box.label == label).set_value(value).run()


def type_in(at: AppTest, label: str, text: str) -> AppTest:
    return next(box for box in at.text_input if box.label == label).set_value(text).run()


def add(at: AppTest) -> do.Intervention:
    """The change that the button adds."""
    at.button("what-if.add").click().run()
    assert not at.exception
    assert not at.error
    *_, change = do.read_text(at.query_params["changes"])
    return change


def problem(at: AppTest) -> str:
    assert at.button("what-if.add").disabled
    (told,) = at.warning
    return told.value.replace("\\", "")


def test_the_sorts_stand_in_five_groups_and_none_is_open_at_first():
    at = run(PAGE, model="random", text=TEXT)
    groups = at.segmented_control(key="what-if.group")
    assert groups.options == ["Tokens", "Heads", "Attention", "Arithmetic", "Another sentence"]
    assert "what-if.add" not in [each.key for each in at.button]


@pytest.mark.parametrize(("group", "sort"), SORTS)
def test_every_sort_of_change_can_be_added(group: str, sort: int):
    assert isinstance(add(opened(group, sort)), SORTS[group, sort])


def test_a_change_of_a_head_starts_with_the_head_that_the_page_shows():
    assert add(opened("Heads", 0, cross="2.4")) == do.ablate("cross", 1, 3)


def test_every_head_of_a_layer_can_be_switched_off():
    at = choose(opened("Heads", 0), "Head", -1)
    assert add(at) == do.ablate("cross", 2, None)


def test_a_source_token_becomes_a_word_of_the_vocabulary():
    at = type_in(opened("Tokens", 0), "Replacement token", "three")
    assert add(at) == do.edit_source(0, "▁three")


def test_a_word_that_is_no_token_is_refused_and_stays_in_its_field():
    at = type_in(opened("Tokens", 0), "Replacement token", "xyzzyxyzzy")
    assert "no single token for “xyzzyxyzzy”" in problem(at)
    assert next(box for box in at.text_input if box.label == "Replacement token").value == "xyzzyxyzzy"


def test_two_changes_of_one_token_are_refused():
    at = opened("Tokens", 1, changes=do.write_text([do.edit_source(0, "▁three")]))
    assert "Two changes decide source token 1" in problem(at)
    choose(at, "Source token", 1)
    assert add(at) == do.drop_source(1)


def test_a_row_s_weight_moves_to_the_chosen_key_and_the_page_says_what_is_left():
    at = opened("Attention", 0)
    choose(at, "Row of", 1)
    choose(at, "Weight to", 2)
    next(box for box in at.number_input if box.label == "Weight").set_value(0.75).run()
    now = models.find("random").translator().translate(TEXT).weights("cross", *HEAD)[1, 2]
    assert f"Now {now:.2f}; the other keys share 0.25 in their old proportions." in words(at)
    assert add(at) == do.set_row("cross", *HEAD, 1, {2: 0.75})


def test_a_row_of_the_decoder_offers_only_keys_that_it_may_see():
    at = choose(opened("Attention", 0), "Attention", "decoder")
    choose(at, "Row of", 1)
    assert len(next(box for box in at.selectbox if box.label == "Weight to").options) == 2


@pytest.mark.parametrize(
    ("kind", "cells", "change"),
    [
        ("cross", "cell", do.mask("cross", forbid=[(0, 0)])),
        ("cross", "key", do.mask("cross", forbid=[(None, 0)])),
        ("encoder", "self", do.mask("encoder", forbid="self")),
        ("encoder", "future", do.mask("encoder", forbid="future")),
        ("decoder", "past", do.mask("decoder", forbid="past")),
    ],
)
def test_masks_hide_cells_columns_and_regions(kind: str, cells: str, change: do.Intervention):
    at = choose(opened("Attention", 1), "Attention", kind)
    assert add(choose(at, "Mask", cells)) == change


def test_lifting_the_causal_mask_keeps_to_the_translation_without_changes_and_says_so():
    at = choose(opened("Attention", 1), "Attention", "decoder")
    choose(at, "Mask", "lift")
    assert "While decoding, later tokens do not exist" in words(at)
    assert add(at) == do.mask("decoder", allow="future")
    assert at.query_params["target"] == models.find("random").translator().translate(TEXT).text
    at.button("what-if.decode").click().run()
    assert not at.exception
    assert not {"target", "changes"} & set(at.query_params)
    kept = next(each for each in at.checkbox if each.key.startswith("changed.on.0"))
    assert not kept.value
    kept.check().run()
    assert do.read_text(at.query_params["changes"]) == (do.mask("decoder", allow="future"),)
    assert at.query_params["target"] == models.find("random").translator().translate(TEXT).text


def test_a_given_translation_is_not_said_to_stay_the_same():
    lifted = do.mask("decoder", allow="future")
    at = opened("Attention", 1, changes=do.write_text([lifted]), target="eins zwei")
    assert not at.exception
    assert "is given, so it cannot change" in words(at)
    assert "stays the same" not in words(at)


@pytest.mark.parametrize(("way", "cells"), [("next", "next"), ("seen", [(0, 2)]), ("shown", [(None, 2)])])
def test_one_cell_or_a_column_of_the_decoder_can_be_shown(
    way: str, cells: str | list[tuple[int | None, int]]
):
    at = choose(opened("Attention", 1), "Attention", "decoder")
    choose(at, "Mask", way)
    if way != "next":
        choose(at, "Key", 2)
    assert add(at) == do.mask("decoder", allow=cells)


def test_a_patch_says_what_is_missing_before_there_is_another_sentence():
    at = opened("Another sentence", 0)
    assert at.button("what-if.add").disabled
    assert not at.warning


@pytest.mark.parametrize("place", ["output", "embeddings", "stream", "head"])
def test_every_place_can_be_patched_from_another_sentence(place: str):
    at = choose(opened("Another sentence", 0), "Put in", place)
    change = add(type_in(at, "The other sentence", "one two three five"))
    assert isinstance(change, do.Patch)
    assert change.text == "one two three five"


def test_the_words_that_differ_are_patched_and_those_that_both_share():
    at = type_in(opened("Another sentence", 0), "The other sentence", "one two three five")
    differing = add(at).positions
    shared = add(choose(at, "At", "shared")).positions
    length = len(models.find("random").translator().translate(TEXT).source_tokens)
    assert differing
    assert shared
    assert sorted((*differing, *shared)) == [(i, i) for i in range(length)]


def test_sentences_of_different_lengths_are_not_put_in_place_by_place():
    at = type_in(opened("Another sentence", 0), "The other sentence", "one two")
    assert "not every token has a counterpart" in problem(choose(at, "At", "all"))


def test_a_scale_that_is_no_number_cannot_be_typed_and_one_in_range_is_taken():
    at = opened("Heads", 1)
    next(box for box in at.number_input if box.label == "Output times").set_value(-1.0).run()
    assert add(at) == do.scale("cross", *HEAD, -1.0)
