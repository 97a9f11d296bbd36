"""The switch between weights, what they carried and what they did, on every page with linked maps."""

from __future__ import annotations

import json

import numpy as np
import pytest
from app_pages import array, feeds, run, said, words
from sources import named

from explorer.app.maps import measures
from explorer.app.server import catalogue
from explorer.app.server.runs import Request
from explorer.app.server.view import View
from explorer.lenses.measures.carried import carried
from explorer.lenses.measures.effect import effect
from transformer import Capture, load_translator

TEXT = "one two three"
KINDS = {
    "encoder": "pages/encoder_self_attention.py",
    "decoder": "pages/decoder_self_attention.py",
    "cross": "pages/cross_attention.py",
}


@pytest.fixture
def traced():
    translator = load_translator(catalogue.directory("random"))
    return translator, translator.translate(TEXT, capture=Capture(residual=True))


def opened(kind: str, measure: str, **more: str):
    return run(KINDS[kind], model="random", text=TEXT, measure=measure, **{kind: "2.3"}, **more)


def cells(feed) -> np.ndarray:
    spec = json.loads(feed["figure"])
    return array(spec["data"][0]["customdata"])


@pytest.mark.parametrize("kind", KINDS)
def test_maps_show_what_was_carried(kind, traced):
    translator, translation = traced
    feed = feeds(opened(kind, "carried"))[kind]
    norms = carried(translator.model, translation, kind, 1, 2).norms
    found = cells(feed)
    np.testing.assert_allclose(found[..., 1], norms, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found[..., 0].sum(1), 1, atol=1e-5)
    assert feed["quantity"] == feed["legend"]["title"] == "share carried"
    assert "what keys carried" in feed["caption"]
    assert "carries most from" in "".join(feed["sentences"][0])
    assert feed["badge"]["text"].startswith("✓ from a verified trace")


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_maps_show_what_happens_without_each_key(kind, traced):
    translator, translation = traced
    feed = feeds(opened(kind, "effect"))[kind]
    expected = np.nan_to_num(effect(translator, translation, kind, 1, 2))
    np.testing.assert_allclose(cells(feed)[..., 1], expected, atol=1e-4)
    assert "by running again" in feed["caption"]
    assert "notes" in feed
    assert not feed["notes"]


def test_too_many_cells_are_not_measured(monkeypatch):
    monkeypatch.setattr(measures, "MOST_CELLS_OF_MAP", 3)
    at = opened("cross", "effect")
    assert "effects are measured for at most 3. It shows weights" in said(at)
    assert feeds(at)["cross"]["quantity"] == "weight"


def test_all_three_maps_of_the_home_page_follow():
    at = run(model="random", text=TEXT, measure="effect")
    found = {kind: feeds(at)[kind]["quantity"] for kind in KINDS}
    assert set(found.values()) == {"share of the largest effect"}
    assert "Σ|Δ log p| of all tokens" in feeds(at)["encoder"]["caption"]


@pytest.mark.parametrize("more", [{"changes": "ablate_cross_1_1"}])
def test_a_changed_run_shows_weights_and_says_why(more):
    at = opened("cross", "carried", **more)
    assert feeds(at)["cross"]["quantity"] == "weight"
    assert "in a run without changes" in words(at)


def test_words_carry_sums_and_effects_stay_those_of_pieces():
    sums = cells(feeds(opened("cross", "carried", words="yes"))["cross"])
    np.testing.assert_allclose(sums[..., 0].sum(1), 1, atol=1e-5)
    assert sums.shape[-1] == 1
    feed = feeds(opened("cross", "effect", words="yes"))["cross"]
    assert cells(feed).shape[-1] == 2


def test_a_cell_is_measured_in_every_way(traced):
    translator, translation = traced
    row, key = 1, 2
    one = View(Request(named("random"), TEXT, "greedy", None), translation, None)
    told = measures.of_cell(one, "cross", (1, 2), (row, key), row)
    found = {name: value for name, value, _ in told}
    assert found["weight"] == f"{translation.weights('cross', 1, 2)[row, key]:.3f}"
    own = carried(translator.model, translation, "cross", 1, 2)
    assert found["carried, ‖α x W_V W_O‖"] == f"{own.norms[row, key]:.3f}"
    lost = effect(translator, translation, "cross", 1, 2, "zeroed", rows=[row])[row, key]
    assert float(found["Δ log p, value zeroed"].replace("−", "-")) == pytest.approx(float(lost), abs=6e-4)


def test_a_click_opens_why_the_token_of_the_cursor_was_written():
    at = run(model="random", text=TEXT, step="3")
    button = next(each for each in at.button if each.label == "Why this token?")
    button.click().run()
    assert not at.exception
    assert "<h1>Explanation</h1>" in "".join(each.proto.body for each in at.get("html"))
    assert "at step 3" in words(at)
