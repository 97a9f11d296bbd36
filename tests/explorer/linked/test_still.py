"""Runs without steps: the cursor walks over what was read, and nothing speaks of an output."""

from dataclasses import replace

import numpy as np
import pytest
from living_pages import Opened
from sources import named
from still_runs import still_run

from explorer import page
from explorer.app.address.state import State
from explorer.app.maps.looking import cells_of, lacking
from explorer.app.server.run_key import RunKey
from explorer.app.server.view import View
from explorer.lenses.words.telling import telling_row
from explorer.linked.view.feeds import about_row, fades, race_feed
from explorer.linked.view.home import HOME, Layout, home, stops
from explorer.linked.view.strips import positions_of, sides_of, strips_feed
from transformer import Translator
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
