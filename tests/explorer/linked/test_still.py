"""Runs without steps: the cursor walks over what was read, and nothing speaks of an output."""

from dataclasses import replace

import numpy as np
import pytest
from living_pages import Opened
from sources import named
from still_runs import still_run

from explorer import PageError, page, show
from explorer.app.address.state import State
from explorer.app.maps.looking import cells_of, lacking
from explorer.app.server.run_key import RunKey
from explorer.app.server.view import View
from explorer.figures.base import captions
from explorer.lenses.words.reading import Reading, read_view
from explorer.lenses.words.telling import telling_row
from explorer.lenses.words.together import as_one
from explorer.linked.view.feeds import about_row, fades, race_feed
from explorer.linked.view.home import HOME, Layout, home, stops
from explorer.linked.view.strips import positions_of, sides_of, strips_feed
from transformer import Translator
from transformer.exports.array_numbers import WeightsError
from transformer.exports.array_run import run_of
from transformer.text.words import Special

SOURCE = (Special("[CLS]"), "▁the", "▁old", "▁house", ".", Special("[SEP]"))
TARGET = ("<s>", "▁das", "▁alte", "▁Haus")


def layout(strips: tuple[str, ...], plots: tuple[str, ...], cursor: str) -> Layout:
    return Layout("home", "home", strips, plots, plots[0], cursor)


RUNS = {
    "an encoder": (
        still_run(("encoder",), SOURCE),
        layout(("source",), ("encoder",), "source"),
        {"source": "text"},
        {"step": "step", "source": "token"},
        {"encoder": "row of “{source}”"},
    ),
    "a decoder": (
        still_run(("decoder",), (), TARGET),
        layout(("target",), ("decoder",), "step"),
        {"target": "text"},
        {"step": "token", "source": "source token"},
        {"decoder": "row of “{reads}”"},
    ),
    "cross-attention": (
        still_run(("cross",), SOURCE, TARGET),
        layout(("source", "target"), ("cross",), "step"),
        {"source": "source", "target": "target"},
        {"step": "target token", "source": "source token"},
        {"cross": "row of “{reads}”"},
    ),
    "all three": (
        still_run(("encoder", "decoder", "cross"), SOURCE, TARGET),
        layout(("source", "target"), ("cross", "encoder", "decoder"), "step"),
        {"source": "source", "target": "target"},
        {"step": "target token", "source": "source token"},
        {
            "encoder": "row of “{source}”",
            "decoder": "row of “{reads}”",
            "cross": "row of “{reads}”",
        },
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_view_of_a_run_follows_from_its_kinds_and_sides(name: str):
    run, view, sides, positions, about = RUNS[name]
    assert home(run) == view
    assert sides_of(run) == sides
    assert positions_of(run) == positions
    assert {kind: about_row(run, kind) for kind in about} == about
    assert not any(fades(run, kind) for kind in about)
    tour = stops(run, 2)
    assert [stop["step"] for stop in tour] == [None, *[2] * (len(tour) - 1)]
    assert {stop["plot"] for stop in tour} == {*about, "controls"}
    assert not [stop for stop in tour if "step" in stop["text"] or "written" in stop["text"]]
    strips = strips_feed("abc", run)
    assert (strips["steps"], strips["names"]["predicts"]) == (len(run.target_tokens), [])
    assert strips["begins"] == ""


def test_a_run_with_steps_has_the_view_that_it_had(translator: Translator):
    run = translator.translate("one two three", max_length=5)
    assert home(run) == HOME
    assert positions_of(run) == {"step": "step", "source": "source token"}
    assert [stop["plot"] for stop in stops(run, 1)] == [
        "encoder",
        "controls",
        "decoder",
        "cross",
        "next",
    ]
    assert {kind: fades(run, kind) for kind in ("encoder", "decoder", "cross")} == {
        "encoder": False,
        "decoder": True,
        "cross": True,
    }


def opened_of(run: object) -> View:
    return View(RunKey(named("random"), "one", "greedy", None), run, None)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("an encoder", {"encoder": (3, 3)}),
        ("a decoder", {"decoder": (1, 1)}),
        ("all three", {"encoder": (3, 3), "decoder": (1, 1), "cross": (1, 3)}),
    ],
)
def test_the_cursor_s_cell_of_each_kind(name: str, cells: dict[str, tuple[int, int]]):
    state = State(step=1, source=3, encoder=(0, 0), decoder=(0, 0), cross=(0, 0))
    assert cells_of(opened_of(RUNS[name][0]), state) == cells


def test_candidates_follow_the_axis_that_they_are_given(translator: Translator):
    steps = translator.translate("one two", max_length=3).steps
    usual = race_feed("abc", steps, "", None)
    feed = race_feed("abc", steps, "", None, follows="source", title="Hidden token")
    assert {name: (usual[name], feed[name]) for name in usual if usual[name] != feed[name]} == {
        "follows": ("step", "source"),
        "title": ("Next token", "Hidden token"),
        "about": ("after reading “{reads}”", "in the place of “{source}”"),
        "alt": (
            "Candidates for the next token, best first.",
            "Candidates for the hidden token, best first.",
        ),
    }


def test_a_text_opens_at_the_word_that_looks_most_at_another_word():
    weights = np.zeros((6, 6), np.float32)
    weights[2, 2] = 0.9  # on itself
    weights[1, 5] = 0.8  # on a mark
    weights[3, 1] = 0.4
    weights[1, 2] = 0.3
    weights[2, 1] = np.nan
    assert telling_row(weights, SOURCE) == 3
    assert telling_row(weights[:2, :2], ("[CLS]", "[SEP]")) == 0


@pytest.mark.parametrize("name", RUNS)
def test_a_page_of_a_run_without_steps_holds_its_maps_and_says_nothing_of_an_output(name: str):
    run, view, *_ = RUNS[name]
    content = page(run)
    opened = Opened(content).run
    assert [*opened["spec"]["plots"]] == [*view.plots]
    assert opened["spec"]["cursor"] == view.cursor
    assert [*opened["shown"]] == ["strips"]
    assert (opened["place"]["source"] is None) == (view.cursor == "step")
    for kind in run.config.sites:
        for layer in range(2):
            for head in range(3):
                expected = np.rint(1000 * run.weights(kind, layer, head).astype(float))
                assert (Opened(content).weights(kind)[layer, head] == expected).all()
    said = " ".join(text for texts in opened["said"].values() for text in texts)
    assert "read by the model still" in said
    assert "decoding" not in said


def test_a_run_that_writes_nothing_has_no_effects():
    opened = opened_of(RUNS["an encoder"][0])
    assert lacking(opened, "effect") == (
        "An effect changes how probable a token is, and this run predicts none."
    )
    run = replace(opened.translation, fills={1: object()})
    assert lacking(replace(opened, translation=run), "effect") is None


# --- weights of one's own ------------------------------------------------------------------------


def shares(*shape: int) -> np.ndarray:
    """Weights whose rows sum to 1."""
    weights = np.random.default_rng(1).random(shape).astype(np.float32)
    return weights / weights.sum(-1, keepdims=True)


WORDS = ["[CLS]", "old", "house", "[SEP]"]


def test_a_page_of_weights_holds_them_and_says_that_nobody_checked_them():
    weights = shares(2, 3, 4, 4)
    content = page(weights, WORDS, name="BERT", kinds="heads of BERT", place="source=3&encoder=1.2")
    opened = Opened(content)
    assert (opened.weights("encoder") == np.rint(1000 * weights.astype(float))).all()
    told = opened.run["kinds"]["encoder"]
    assert (told["raw"], told["scored"], told["fine"]) == (False, False, True)
    feed = opened.feed("encoder", 1, 0)
    assert "score" not in feed["figure"]["data"][0]["hovertemplate"]
    assert feed["title"] == "heads of BERT L2 H1"
    assert feed["choice"]["name"] == "heads of BERT"
    assert feed["caption"].startswith("heads of BERT · layer 2 · head 1{step} · weights, colour")
    assert feed["caption"].endswith("· BERT")
    assert feed["badge"]["text"] == "○ your numbers, not checked"
    said = opened.run["said"]
    assert said["about"] == [
        "Attention weights, BERT, not checked: every head, in one file of Attention explorer, "
        "which needs no network."
    ]
    assert said["texts"] == ["old house"]
    assert said["proof"][-1] == "Weights are written with three decimals."
    assert show(weights, WORDS, height=300).height == 300
    assert page(weights, tokens=WORDS) == page(weights, WORDS)


def test_a_page_holds_numbers_that_are_no_weights_as_they_are():
    weights = shares(1, 2, 4, 4)
    weights[0, 1] = [[-1, 0, 1, 2], [np.nan, 0.5, 0.25, 0.25], [0, 0, 0, 0.5], [0, 0, 0, 1]]
    opened = Opened(page(weights, WORDS))
    told = opened.run["kinds"]["encoder"]
    assert (told["raw"], told["fine"]) == (True, False)
    levels, numbers = opened.cells["encoder"]
    assert np.array_equal(numbers, weights, equal_nan=True)
    assert levels[0, 1].tolist() == [
        [1, 1, 255, 255],
        [0, 128, 65, 65],
        [1, 1, 1, 128],
        [1, 1, 1, 255],
    ]
    feed = opened.feed("encoder", 0, 1)
    assert feed["badge"]["text"] == "○ your numbers, not checked"
    assert "1 of 4 rows do not sum to 1" not in feed["badge"]["title"]
    assert "2 of 4 rows do not sum to 1; the furthest sums to 2." in feed["badge"]["title"]
    assert feed["notes"]["2"] == "this row sums to 0.50, not to 1"
    proof = " ".join(opened.run["said"]["proof"])
    assert proof.count("rows do not sum to 1; the furthest") == 2  # behind the badge, as a note
    assert "1 cell is no number (NaN), drawn empty." in proof
    assert "Weights are written as they are, as 32-bit numbers" in proof


def test_a_long_text_of_one_s_own_is_in_pooled_tiles():
    weights = shares(1, 2, 300, 300)
    opened = Opened(page(weights, [f"word{i}" for i in range(300)], heads="encoder=1.2"))
    assert opened.run["kinds"]["encoder"]["whole"] == [[0, 1]]
    assert opened.tiles["encoder"].shape == (1, 2, 30, 30)
    for head in range(2):
        for row, column in np.ndindex(30, 30):
            block = weights[0, head, 10 * row : 10 * row + 10, 10 * column : 10 * column + 10]
            expected = 1 + round(254 * float(block.max()))
            assert opened.tiles["encoder"][0, head, row, column] == expected


def test_tokens_stand_with_weights_and_a_model_with_a_run(translator: Translator):
    run = translator.translate("one two", max_length=3)
    with pytest.raises(PageError, match="a run has its own"):
        page(run, ["one", "two"])
    with pytest.raises(PageError, match="a model belongs to a run"):
        page(shares(1, 1, 2, 2), translator)
    for values in ({"kinds": "encoder"}, {"name": "BERT"}):
        with pytest.raises(PageError, match="belongs to weights; a run has its own"):
            page(run, translator, **values)


@pytest.mark.parametrize(
    "values",
    [
        {"directory": "model"},
        {"measures": ["carried"]},
        {"why": [1]},
        {"beside": run_of(shares(1, 1, 2, 2))},
        {"beside_directory": "model"},
    ],
    ids=lambda values: next(iter(values)),
)
def test_weights_refuse_what_belongs_to_the_run_of_a_model(values: dict[str, object]):
    (name,) = values
    with pytest.raises(PageError) as refusal:
        page(shares(1, 1, 2, 2), **values)
    assert str(refusal.value) == (
        f"`{name}` belongs to the run of a model; weights are shown without one."
    )


def test_tokens_of_a_page_are_an_array_too_and_none_are_not_numbered():
    weights = shares(1, 1, 4, 4)
    usual = page(weights, WORDS)
    assert page(weights, np.array(WORDS)) == page(weights, iter(WORDS)) == usual
    assert page(weights, tokens=np.array(WORDS)) == usual
    for tokens in ({"tokens": []}, {"model": ()}):
        with pytest.raises(WeightsError, match="has 4, but 0 tokens were given"):
            page(weights, **tokens)


def test_a_page_holds_half_a_character_and_infinite_weights():
    weights = shares(1, 2, 4, 4).astype(np.float64)
    weights[0, 0, 0, 0] = 1e300
    weights[0, 1, 0, :2] = [np.inf, -np.inf]
    opened = Opened(page(weights, ["\ud800", *"abc"], name="\ud800"))
    assert opened.run["said"]["texts"] == ["\ufffd a b c"]


def test_words_and_several_rows_are_those_of_the_numbers_that_were_given():
    weights = shares(1, 1, 5, 5)
    weights[0, 0, 2, 3] = np.nan
    weights[0, 0, 4] *= 2
    run = run_of(weights, ["[CLS]", "old", "house", "##s", "[SEP]"])
    view = run.map("encoder", 0, 0)
    words = read_view(view, Reading(words=True, hide_special=True))
    rows = [[1], [2, 3]]
    for i, queries in enumerate(rows):
        for j, keys in enumerate(rows):
            cells = [[float(weights[0, 0, query, key]) for key in keys] for query in queries]
            mean = sum(map(sum, cells)) / len(queries)
            assert words.weights[i, j] == pytest.approx(mean, rel=1e-5, nan_ok=True)
    total = float(sum(weights[0, 0, 1]))
    assert words.sums == pytest.approx([total, np.nan], rel=1e-5, nan_ok=True)
    joined = as_one(read_view(view, Reading()), (1, 4), "sum")
    assert joined.weights[0] == pytest.approx(weights[0, 0, 1] + weights[0, 0, 4])
    for drawn in (words, joined, read_view(view, Reading())):
        assert captions.badge(drawn.audit)["text"] == "○ your numbers, not checked"
        other = replace(drawn, weights=drawn.weights + np.float32(0.25))
        assert captions.badge(other.audit) == {
            "passed": False,
            "text": "✗ not as they were given",
            "title": captions.badge(other.audit)["title"],
        }
    texts = captions.sentences(words)[1]
    assert texts[:2] == ["For ", "houses"]
    assert captions.caption(words).split(" · ")[3].startswith("weights of words")
    assert (
        captions.caption(read_view(view, Reading())).split(" · ")[3].startswith("weights, colour")
    )
