"""The switch between weights, what they carried and what they did, on every page with linked maps."""

import json

import numpy as np
import pytest
from app_pages import array, feeds, run, said, words
from sources import named

from explorer import lenses
from explorer.app.maps import measures
from explorer.app.server import catalogue
from explorer.app.server.runs import Request
from explorer.app.server.view import View
from transformer import Capture, load_translator

TEXT = "one two three"
KINDS = ("encoder", "decoder", "cross")


@pytest.fixture
def traced():
    translator = load_translator(catalogue.directory("random"))
    return translator, translator.translate(TEXT, capture=Capture(residual=True))


def opened(kind: str, measure: str, **more: str):
    page = f"pages/{kind}_{'' if kind == 'cross' else 'self_'}attention.py"
    return run(page, model="random", text=TEXT, measure=measure, **{kind: "2.3"}, **more)


def cells(feed) -> np.ndarray:
    return array(json.loads(feed["figure"])["data"][0]["customdata"])


@pytest.mark.parametrize("kind", KINDS)
def test_maps_show_what_was_carried(kind, traced):
    feed = feeds(opened(kind, "carried"))[kind]
    norms = lenses.carried(traced[0].model, traced[1], kind, 1, 2).norms
    np.testing.assert_allclose(cells(feed)[..., 1], norms, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(cells(feed)[..., 0], norms / norms.sum(1, keepdims=True), atol=1e-5)
    assert feed["quantity"] == feed["legend"]["title"] == "share carried"
    assert "what keys carried" in feed["caption"]
    assert "carries most from" in "".join(feed["sentences"][0])
    assert feed["badge"]["text"].startswith("✓ from a verified trace")


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_maps_show_what_happens_without_each_key(kind, traced):
    feed = feeds(opened(kind, "effect"))[kind]
    expected = np.nan_to_num(lenses.effect(*traced, kind, 1, 2))
    np.testing.assert_allclose(cells(feed)[..., 1], expected, atol=1e-4)
    assert "by running again" in feed["caption"]
    assert feed["notes"] == {}


def test_maps_that_cannot_be_measured_show_weights_and_say_why(monkeypatch):
    changed = opened("cross", "carried", changes="ablate_cross_1_1")
    assert "in a run without changes" in words(changed)
    monkeypatch.setattr(measures, "MOST_CELLS_OF_MAP", 3)
    large = opened("cross", "effect")
    assert "effects are measured for at most 3. It shows weights" in said(large)
    assert [feeds(at)["cross"]["quantity"] for at in (changed, large)] == ["weight"] * 2


def test_words_carry_sums_and_effects_stay_those_of_pieces():
    sums, pieces = (
        cells(feeds(opened("cross", each, words="yes"))["cross"]) for each in ("carried", "effect")
    )
    np.testing.assert_allclose(sums[..., 0].sum(1), 1, atol=1e-5)
    assert (sums.shape[-1], pieces.shape[-1]) == (1, 2)


def test_a_cell_is_measured_in_every_way(traced):
    (model, translation), row, key = traced, 1, 2
    one = View(Request(named("random"), TEXT, "greedy", None), translation, None)
    own = lenses.carried(model.model, translation, "cross", 1, 2)
    effects = [
        lenses.effect(*traced, "cross", 1, 2, way, rows=[row])[row, key]
        for way in ("hidden", "zeroed", "mean")
    ]
    expected = [
        translation.attention.scores("cross", 1, 2)[row, key],
        translation.weights("cross", 1, 2)[row, key],
        *(own.values[key], own.norms[row, key], own.bias, own.norms[row, key] / own.norms[row].sum()),
        *effects,
    ]
    lines = measures.of_cell(one, "cross", (1, 2), (row, key), row)
    assert [float(each.replace("−", "-")) for _, each, _ in lines] == pytest.approx(expected, abs=6e-4)
    masked = measures.of_cell(one, "decoder", (1, 2), (0, 1), 0)
    assert masked == [("weight", "0", "masked: the query may not see the key")]
