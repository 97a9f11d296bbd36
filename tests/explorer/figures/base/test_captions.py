from __future__ import annotations

import numpy as np
from head_views import Audit, View, decoder_view, view

from explorer.figures.base import captions
from transformer import Window


def cross_view(weights: list[list[float]], **more: object) -> View:
    array = np.array(weights, np.float32)
    return View(
        "cross",
        ("▁war", "▁müde"),
        ("▁tired", "</s>"),
        array,
        np.ones(array.shape, bool),
        predicted_tokens=("▁müde", "</s>"),
        window=Window(0, 2, 0, 2),
        **more,
    )


def test_a_sentence_has_the_numbers_of_its_row():
    parts = captions.sentence(cross_view([[0.61, 0.39], [0.5, 0.5]]), 0)
    assert parts == [
        "Predicting ",
        "müde",
        ", head 5 of layer 3 puts 61\u00a0% of its weight on ",
        "tired",
        ".",
    ]


def test_a_head_that_is_off_puts_no_weight_anywhere():
    (first, second) = captions.sentences_off(cross_view([[0.61, 0.39], [0.5, 0.5]]), "content")
    told = ", head 5 of layer 3 (content) is off: its output is 0, so these weights reach nothing."
    assert (first, second) == (["Predicting ", "müde", told], ["Predicting ", "</s>", told])


def test_a_window_says_how_much_lies_outside():
    assert "20\u00a0% lies outside" in captions.sentence(cross_view([[0.6, 0.2], [0.5, 0.5]]), 0)[-1]


def test_a_row_that_rests_on_a_special_token_is_named():
    notes = captions.rests(cross_view([[0.6, 0.4], [0.3, 0.7]]))
    assert notes == {1: "over half of this row's weight lies on </s>, not on a word"}


def test_a_fully_masked_row_is_no_lie():
    head = view("encoder", ("a", "b"), ("a", "b"))
    head.mask[0] = False
    assert "nothing" in captions.sentence(head, 0)[-1]


def test_a_caption_says_what_the_picture_is():
    text = captions.caption(decoder_view())
    for part in (
        "Masked decoder self-attention",
        "layer 3",
        "head 5",
        "{step}",
        "weights",
        "en-de (pre-norm)",
    ):
        assert part in text


def test_the_badge_follows_the_audit():
    assert captions.badge(Audit())["text"] == "✓ verified"
    changed = captions.badge(Audit(changes=("step 1 writes “a”", "step 2 writes “b”")))
    assert changed["text"] == "✓ verified, with 2 changes"
    assert "step 1 writes “a”; step 2 writes “b”" in changed["title"]
    failed = captions.badge(Audit(passed=False))
    assert failed == {**failed, "passed": False, "text": "✗ not verified"}


def test_a_badge_that_claims_less_names_the_trace_it_rests_on():
    claim = "from a {} trace, 4 of 9 numbers computed again"
    told = captions.badge(Audit(claim=claim))
    assert told["text"] == "✓ from a verified trace, 4 of 9 numbers computed again"
    told = captions.badge(Audit(imported=True, placed=False, claim=claim))
    assert told["text"] == "✓ imported file, from a consistent trace, 4 of 9 numbers computed again"


def test_the_badge_of_a_file_promises_no_more_than_that_its_parts_agree():
    told = captions.badge(Audit(imported=True, placed=False))
    assert told["text"] == "✓ imported file, consistent"
    assert "only be checked against itself" in told["title"]
    assert "cannot prove that a model computed" in told["title"]
    derived = captions.badge(Audit(imported=True, placed=False), derived=True)
    assert derived["text"] == "✓ imported file, from a consistent trace"
    failed = captions.badge(Audit(passed=False, imported=True, placed=False))
    assert failed["text"] == "✗ imported file, not consistent"
    for each in (told, derived, failed):
        assert "verified" not in f"{each['text']} {each['title']}"


def test_the_badge_says_only_with_the_model_that_everything_is_in_its_place():
    assert "every layer, head and step in its place" in captions.badge(Audit())["title"]
    assert "in its place" not in captions.badge(Audit(placed=False))["title"]
