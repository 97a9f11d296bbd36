"""Texts of figures: tokens, numbers, names, sentences about a row, captions and badges, each
whole."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from head_views import Audit, View, decoder_view, view

from explorer.figures.base import captions, labels
from explorer.figures.base.bars import candidates, shown_candidates
from explorer.figures.base.labels import percent
from explorer.figures.maps.alignment import size_for
from explorer.figures.maps.export import wrapped
from explorer.figures.pages.distributions import LARGEST, share, small
from explorer.figures.pages.study import number
from explorer.figures.pages.what_if import merged_names, scale_end
from transformer import Window
from transformer.run import Alternative, DecodeStep
from transformer.text.words import Special
from transformer.view import Check

WRITTEN: list[tuple[Callable[..., Any], dict[Any, Any]]] = [
    (
        labels.display,
        {
            "▁tired": "tired", "</s>": "</s>", "▁": "◦", "": "◌", "  ": "◦◦", "<0xF0>": "0xF0", "<0x3C>": "<",
            "\u202e": "U+202E", "▁<unk:日本>": "<unk> 日本", "a\x07b": "aU+0007b", "\u200b": "U+200B",
            "a▁b": "a◦b",
        },
    ),
    (labels.piece, {"geschrieben": "‿geschrieben", "▁ge": "ge", "5": "‿5", "я": "‿я", ",": ",", "猫": "猫"}),
    (labels.piece, {Special(each): each for each in (">>fra<<", "__fr__", "fra_Latn", "</s>")}),
    # as somebody typed them
    (labels.piece, {"fra_Latn": "‿fra_Latn", "</s>": "</s>", "pt_BR": "‿pt_BR"}),
    (labels.pieces, {("ge", "schrieben", "▁ge", "ge"): ["ge", "‿schrieben", "ge", "‿ge"]}),
    # whole words are never marked
    (labels.pieces, {("geschrieben", "hat"): ["geschrieben", "hat"]}),
    (labels.names, {("▁die", "▁Katze", "▁die"): ["die₁", "Katze", "die₂"], ("▁ge", "ge"): ["ge", "‿ge"]}),
    (labels.escape, {"<b>&#000001": "&lt;b&gt;&amp;&#35;000001"}),
    (labels.shorten, {"Donaudampfschiff": "Donaudampfsc…", "Donaudampfsc": "Donaudampfsc"}),
    (labels.number, {-1.234: "−1.23", -0.001: "0.00", 2.0: "2.00"}),
    (labels.telling, {0.0: "0", 3e-8: "0", 0.00004: "0.00004", 0.0031: "0.003", 0.005: "0.01"}),
    (labels.times, {-12.1: "180,000 times less probable", 1.0: "2.7 times more probable", -0.05: ""}),
    (labels.times, {-40.0: "2.4 × 10¹⁷ times less probable", -2.31: "10 times less probable"}),
    (labels.moved, {0.0: "0", -3e-8: "0", 0.00004: "+0.00004", -0.0031: "−0.003", math.nan: "not known"}),
    (labels.scientific, {1.54e-7: "1.5 × 10⁻⁷", -2.0: "−2.0 × 10⁰", 0.0: "0", 3e12: "3.0 × 10¹²"}),
    (
        lambda each: labels.aligner(*each),
        {
            (((0, 1),), "read"): "alignment head (head 2 of layer 1, row that reads the word)",
            (((1, 0), (1, 1)), "predicted"): "mean over all heads of layer 2 (row that predicts the word)",
            (((0, 0), (2, 1)), "read"): "mean over all heads of layers 1 to 3 (row that reads the word)",
        },
    ),
    (lambda share: percent(share)[:-2], {0.37: "37", 1.0: "100", 0.999: "99.9", 1e-4: "<0.1"}),
    (
        lambda share: percent(share)[:-2],
        {0.995: "99.5", 0.9949: "99", 0.99999: "99.9", 0.01: "1", 0.009: "0.9", 0.001: "0.1", 0.0: "0"},
    ),
    (lambda share: small(share)[:-2], {1e-5: "0.001", 0.0: "0", 1e-12: "<0.00001", 0.9: "90", 0.001: "0.1"}),
    (lambda each: number(*each), {(-0.0001,): "0.000", (0.0,): "0", (-1.5, 1): "−1.5", (None,): ""}),
    (lambda each: number(*each), {(-1200,): "−1,200"}),
    (share, {0: 0, LARGEST / 2: 0.5, LARGEST: 1, 3 * LARGEST: 1}),
    (scale_end, {0.0: 0.1, 0.31: pytest.approx(0.4), 0.4: 0.4, 0.4000001: 0.4, 1.0: 1.0}),
    (lambda words: size_for(words, 520), {3: 520, 41: 520, 100: 1104}),
    (
        lambda pairs: merged_names(("▁a", "▁b", "c"), ("▁a", "▁x", "</s>"), pairs),
        {((0, 0), (1, 1), (2, None), (None, 2)): ["a", "b | x", "A: ‿c", "B: </s>"]},
    ),
]  # fmt: skip
FORMS = [(form, value, text) for form, cases in WRITTEN for value, text in cases.items()]


@pytest.mark.parametrize(("form", "value", "text"), FORMS)
def test_tokens_and_numbers_are_written_for_people(
    form: Callable[[Any], Any], value: Any, text: Any
):
    assert form(value) == text


@pytest.mark.parametrize(
    "token",
    [
        "WWWWWWWWWW",
        "日本語の文章です",
        "geschriebenes",
        "iiiiiiiiiiiiiiiiiiiiiiiiiiii",
        "e\u0301" * 30,
    ],
)
def test_labels_are_cut_by_how_wide_they_are_drawn_with_their_index(token: str):
    for name in labels.names([token, token], labels.ROOM):
        assert "…" in name
        assert 4 < labels.width(name) <= labels.ROOM + 0.4


def test_long_captions_are_broken_and_cut():
    assert all(len(row) <= 20 for row in wrapped("word " * 50, 20))
    assert all(len(row) <= 10 for row in wrapped("日本語" * 30, 20))
    assert wrapped("x" * 10_000, 100)[-1].endswith("…")


def step(chosen: int) -> DecodeStep:
    options = tuple(Alternative(f"▁t{i}", i, math.log(0.5 / 2**i)) for i in range(12))
    return DecodeStep(f"▁t{chosen}", chosen, math.log(0.001), options, 0)


def test_the_chosen_token_is_always_among_the_candidates_and_one_that_the_rules_exclude_says_so():
    assert [candidate.token_id for candidate in shown_candidates(step(2))] == [*range(10)]
    assert [each.token_id for each in shown_candidates(step(77))] == [*range(9), 77]
    each = step(1)
    barred = tuple(replace(option, excluded=True) for option in each.alternatives[:2])
    shown = candidates(replace(each, alternatives=(*barred, *each.alternatives[2:])))
    assert [one.chance for one in shown][:3] == ["barred", "25\u00a0%", "13\u00a0%"]


# --- beside a picture ----------------------------------------------------------------------------


def cross(weights: list[list[float]], **more: Any) -> View:
    array = np.array(weights, np.float32)
    given = {"predicted_tokens": ("▁müde", "</s>"), "window": Window(0, 2, 0, 2)}
    given |= {"mask": np.ones(array.shape, bool)}
    return View("cross", ("▁war", "▁müde"), ("▁tired", "</s>"), array, **{**given, **more})


PLAIN = [[0.61, 0.39], [0.5, 0.5]]
LOOSE = [[0.6, 0.2], [0.5, 0.5]]
ENCODER = {"predicted_tokens": None}
WINDOW = np.array([[True, False], [False, False]])


def measured(name: str, value: float, **more: Any) -> View:
    return cross(PLAIN, measure=name, measured=np.array([[value, 0.0], [0.0, 0.0]]), **more)


P = "Predicting [müde], head 5 of layer 3"
MOST = "Predicting [müde], most changes if head 5 of layer 3 does not see [tired]: the token gets"
NONE = "Predicting [müde], no single key of head 5 of layer 3 makes a difference of 0.005 nats."
ON_ALL = "For [war], head 5 of layer 3 is missed most without [tired]: "
ON_ALL += "log p of the output's tokens changes by 1.50 nats in sum."
EVEN = replace(decoder_view(3), weights=np.full((3, 3), 1 / 3, np.float32))
SAID: list[tuple[View, int, str]] = [
    (cross(PLAIN), 0, f"{P} puts 61\u00a0% of its weight on [tired]."),
    (
        cross(PLAIN, **ENCODER),
        0,
        "For [war], head 5 of layer 3 puts 61\u00a0% of its weight on [tired].",
    ),
    (
        cross(LOOSE),
        0,
        f"{P} puts 60\u00a0% of its weight on [tired] (20\u00a0% lies outside this window).",
    ),
    (
        cross(LOOSE, reach=3),
        0,
        f"{P} puts 60\u00a0% of its weight on [tired] (20\u00a0% is taken by the Gaussian).",
    ),
    (
        cross(PLAIN, mask=WINDOW),
        1,
        f"{P} may attend to nothing: every key is masked.".replace("müde", "</s>"),
    ),
    (
        measured("carried", 2.0),
        0,
        f"{P} carries most from [tired]: 61\u00a0% of the summed lengths.",
    ),
    (measured("effect", -0.25), 0, f"{MOST} less probable, Δ log p −0.25 nats."),
    (measured("effect", 0.25), 0, f"{MOST} more probable, Δ log p +0.25 nats."),
    (measured("effect", 0.004), 0, NONE),
    (measured("effect_on_all", 1.5, **ENCODER), 0, ON_ALL),
    (EVEN, 1, "Having read [w0], head 5 of layer 3 puts 33\u00a0% of its weight on [<s>]."),
]


@pytest.mark.parametrize(("head", "row", "text"), SAID)
def test_a_sentence_has_the_numbers_of_its_row(head: View, row: int, text: str):
    parts = captions.sentences(head)[row]
    assert "".join(f"[{each}]" if i % 2 else each for i, each in enumerate(parts)) == text


def test_a_head_that_is_off_puts_no_weight_anywhere_and_a_role_is_named():
    off = ", head 5 of layer 3 (content) is off: its output is 0, so these weights reach nothing."
    both = [["Predicting ", "müde", off], ["Predicting ", "</s>", off]]
    assert captions.sentences_off(cross(PLAIN), "content") == both
    assert captions.sentences(cross(PLAIN), "content")[0][2].startswith(
        ", head 5 of layer 3 (content) puts"
    )


def test_rows_that_rest_on_a_special_token_are_named_and_a_map_is_told_in_words():
    head = cross([[0.6, 0.4], [0.3, 0.7]])
    resting = "over half of this row's weight lies on </s>, not on a word"
    assert captions.notes(head) == {1: resting}
    assert captions.notes(replace(head, measure="carried")) == {}
    object.__setattr__(head, "hidden", np.array([0.25, 0.0]))  # as of a map that was read
    assert captions.notes(head) == {0: "25\u00a0% of this row lies on hidden tokens", 1: resting}
    assert captions.summary(head, 3) == (
        "Cross-attention, head 5 of layer 3: 2 queries by 2 keys. Strongest links: "
        "reads müde, predicts </s>, key </s>: 0.70; reads war, predicts müde, key tired: 0.60; "
        "reads war, predicts müde, key </s>: 0.40."
    )
    assert captions.row_summaries(head, 1) == [
        "Largest of reads war, predicts müde: key tired: 0.60.",
        "Largest of reads müde, predicts </s>: key </s>: 0.70.",
    ]


def test_a_caption_says_the_part_of_a_map_and_its_scale():
    head = replace(view("encoder", ("▁a",), ("▁a",), norm="none"), window=Window(64, 128, 0, 64))
    assert captions.caption(head, scale="log") == (
        "Encoder self-attention · layer 3 · head 5{step} · weights, colour from 0 to 1, "
        "logarithmic from 0.001 · queries 65–128, keys 1–64 · en-de (no LayerNorm)"
    )


MADE = "Recomputed from what the model recorded."
PLACED = f"{MADE} A second pass found every layer, head and step in its place."
ERRORS = (
    "Largest row-sum error 1.0 × 10⁻⁷; largest difference between recomputed and used output 2.0 × "
    "10⁻⁶."
)
READ = (
    "Recomputed from a file, which can only be checked against itself: {}. Its log-probabilities, "
    "the "
)
READ += "norms of its values, its type of numbers, and its model's name and hash are as recorded."
AGREE = READ.format("its parts agree, but it cannot prove that a model computed them")
FAILS = READ.format("a check fails")
CLAIM = "from a {} trace, 4 of 9 numbers computed again"


FROM_FILE = {"imported": True}
MISSED = Check("parts sum to the score", 2.0, 1e-4)
FORGED_SUM = {"passed": False, "checks": (MISSED,), "claim": "sums up"}
FORGED_BOTH = {"passed": False, "checks": (MISSED, Check("outputs", 1.0, 1e-4))}
CHANGED = {"changes": ("a", "b"), "unmade": ("c", "d")}
SKIPPED = {"changes": ("a",), "skipped": ("places", "stream")}
UNMADE = "Not checked, as the model is not here: c; d. Changed in this run: a; b."


@pytest.mark.parametrize(
    ("audit", "derived", "text", "title"),
    [
        ({}, False, "✓ verified", f"{PLACED} {ERRORS}"),
        ({"placed": False}, True, "✓ from a verified trace", f"{MADE} {ERRORS}"),
        ({"checks": (), "proofs": ("Told.",)}, False, "✓ verified", "Told."),
        (CHANGED, False, "✓ verified, with 2 changes", f"{PLACED} {ERRORS} {UNMADE}"),
        (SKIPPED, False, "✓ verified, with 1 change; places and stream not checked", None),
        (SKIPPED | {"passed": False}, False, "✗ not verified, with 1 change", None),
        ({"passed": False, "changes": ("a",)}, False, "✗ not verified, with 1 change", None),
        (FORGED_SUM, True, "✗ does not sum up", "These checks fail: parts sum to the score."),
        (
            FORGED_BOTH,
            True,
            "✗ not verified",
            "These checks fail: parts sum to the score, outputs.",
        ),
        (
            {"changes": ("step 3 writes “▁seinen”",)},
            False,
            "✓ verified, with 1 change",
            f"{PLACED} {ERRORS} Changed in this run: step 3 writes “seinen”.",
        ),
        ({"claim": CLAIM}, False, "✓ from a verified trace, 4 of 9 numbers computed again", None),
        (FROM_FILE, False, "✓ imported file, consistent", f"{AGREE} {ERRORS}"),
        (FROM_FILE, True, "✓ imported file, from a consistent trace", f"{AGREE} {ERRORS}"),
        (
            FROM_FILE | {"passed": False},
            False,
            "✗ imported file, not consistent",
            f"{FAILS} {ERRORS}",
        ),
    ],
)
def test_the_badge_follows_the_audit_and_that_of_a_file_promises_no_more_than_that_its_parts_agree(
    audit: dict[str, Any], derived: bool, text: str, title: str | None
):
    found = captions.badge(Audit(**audit), derived)  # type: ignore[arg-type]
    assert found == {
        "passed": audit.get("passed", True),
        "text": text,
        "title": title or found["title"],
    }
