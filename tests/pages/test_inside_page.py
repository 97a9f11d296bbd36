"""Inside a head without a browser: the numbers on the page, other arithmetic, the address, hostile tokens."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from app_pages import array, click_menu, run, said, strip, view
from closed_form import CASES
from inside_page import KINDS, PAGE, charts, equal, independent, line, pictures, told

from explorer.app.sections.inside.steps import STEPS
from transformer.translator import load_translator

BADGE = "what if, not the model's computation"


def figures(section: str, **params: str) -> dict[str, dict]:
    """The figures of a step, by name."""
    return charts(run(PAGE, section=section, **params))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", ["random", "copy"])
def test_the_numbers_on_the_page_are_computed_independently(app_models: Path, model: str, kind: str):
    text, row, shown = CASES["copy"].sentence, 2, dict[str, dict]()
    for step in STEPS:
        at = run(PAGE, section=step, model=model, kind=kind, step="3", source="3", **{kind: "1.2"})
        shown |= charts(at)
        assert "not verified" not in told(at)
    true = independent(load_translator(app_models / model, "cpu"), text, kind, (0, 1), row)
    equal(strip(shown["read"], "x"), true["x"])
    equal(strip(shown["vectors"], "q"), true["q"])
    equal(array(shown["keys"]["data"][0]["z"]), true["k"])
    equal(array(shown["values"]["data"][0]["z"]), true["v"])
    equal(line(shown["scores"], "q·k"), true["products"])
    seen = np.isfinite(line(shown["scores"], "softmax"))
    equal(line(shown["scores"], "softmax")[seen], true["weights"][seen])
    assert not true["weights"][~seen].any()
    equal(strip(shown["sum"], "head, all keys"), true["b"])
    equal(strip(shown["stream"], "+ update"), true["update"])
    rows = load_translator(app_models / model, "cpu").model.decoder.layers[0].cross_attention.out_proj.weight
    width = len(true["q"])
    if kind == "cross":
        equal(array(shown["output matrix"]["data"][0]["z"]), rows.T[width : 2 * width].detach().numpy())
    added = strip(shown["stream"], "stream") + strip(shown["stream"], "+ update")
    equal(strip(shown["stream"], "= sum"), added)
    products = array(shown["keys"]["data"][0]["customdata"])[..., 1]
    equal(products.sum(1), line(shown["scores"], "q·k"))
    shares = array(shown["values"]["data"][0]["customdata"])[..., 1]
    equal(shares.sum(0), strip(shown["sum"], "head, all keys"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_known_key_is_the_one_that_is_opened(name: str, kind: str):
    case, row = CASES[name], 2
    link = {"model": name, "text": case.sentence, "kind": kind, "step": "3", "source": "3", kind: "1.2"}
    weights = line(figures("weights", **link)["scores"], "softmax")
    key = case.keys(kind, 1)[row]
    assert int(np.nanargmax(weights)) == key
    assert weights[key] > 0.99


@pytest.mark.parametrize(
    "what_if",
    [
        "no-projections",
        "inputs",
        "no-scale",
        "temperature-0.5",
        "additive",
        "bilinear",
        "hard",
        "local-1",
        "local-best-1",
        "pair-4",
    ],
)
def test_other_arithmetic_keeps_the_true_row_and_carries_its_badge(what_if: str):
    true = line(
        charts(run(PAGE, section="weights", model="random", kind="decoder", step="5"))["scores"], "softmax"
    )
    at = run(PAGE, section="weights", model="random", kind="decoder", step="5", what_if=what_if)
    shown = charts(at)["scores"]
    np.testing.assert_array_equal(line(shown, "softmax"), true)
    other = line(shown, "what if: weight")
    assert np.nansum(other) == pytest.approx(1, abs=1e-5)
    assert not np.allclose(np.nan_to_num(other), np.nan_to_num(true), atol=1e-4)
    assert told(at).count(BADGE) >= 2
    assert at.query_params["what_if"] == what_if


@pytest.mark.parametrize("kind", KINDS)
def test_without_projections_the_output_is_a_mixture_of_the_inputs(app_models: Path, kind: str):
    at = run(
        PAGE,
        section="sum",
        model="random",
        kind=kind,
        step="3",
        source="3",
        what_if="inputs",
        **{kind: "1.2"},
    )
    true = independent(load_translator(app_models / "random", "cpu"), CASES["copy"].sentence, kind, (0, 1), 2)
    equal(strip(charts(at)["other sum"], "y, what if"), true["y"])
    equal(strip(charts(at)["sum"], "head, all keys"), true["b"])


def test_a_predicted_window_shows_its_centre_and_what_its_weights_sum_to():
    at = run(PAGE, section="weights", model="random", kind="encoder", source="2", what_if="local-predicted-2")
    other = line(charts(at)["scores"], "what if: weight")
    assert 0 < np.nansum(other) < 1
    assert f"The weights sum to {np.nansum(other):.2f}." in told(at)
    query = strip(figures("projections", model="random", kind="encoder", source="2")["vectors"], "q").astype(
        float
    )
    centre = len(other) / (1 + np.exp(-np.tanh(query).sum() / np.sqrt(len(query))))
    assert f"p = {centre:.2f}, with {len(other)} keys counted from 1" in told(at)


def test_local_attention_that_reaches_no_key_says_so():
    at = run(PAGE, section="weights", model="random", text="one", step="9", what_if="local-0")
    assert "No key is that near, so every weight is 0" in told(at)


def test_without_a_switch_nothing_is_called_what_if():
    at = run(PAGE, section="weights", model="random")
    assert BADGE not in told(at)
    assert "saturation" not in charts(at)


def test_no_scale_shows_how_the_softmax_saturates():
    at = run(PAGE, section="weights", model="random", what_if="no-scale")
    largest, gradient = (array(each["y"]) for each in charts(at)["saturation"]["data"])
    assert largest[-1] > largest[0]
    assert 0 <= gradient.min() <= gradient.max() <= 0.71


def test_a_switch_and_a_key_go_into_the_address_and_stay_off_other_pages():
    at = run(PAGE, section="weights", model="random", kind="encoder", source="2")
    next(each for each in at.selectbox if each.label == "Other arithmetic").select("local").run()
    next(each for each in at.selectbox if each.label == "Number").select(3.0).run()
    next(each for each in at.selectbox if each.label == "Key").select(4).run()
    assert not at.exception
    assert (at.query_params["what_if"], at.query_params["key"]) == ("local-3", "5")
    at = click_menu(at, "pages/cross_attention.py")
    assert not {"what_if", "key"} & set(at.query_params)


def test_in_cross_attention_the_key_is_the_source_token_of_the_cursor():
    at = run(PAGE, section="weights", model="random", step="2")
    next(each for each in at.selectbox if each.label == "Key").select(3).run()
    assert at.query_params["source"] == "4"
    assert view(at)["source"] == 3


def test_what_cannot_be_read_in_the_address_is_named():
    told = said(run(PAGE, what_if="temperature-nan", kind="both", key="x"))
    assert all(name in told.replace("\\", "") for name in ("what_if", "kind", "key"))


@pytest.mark.parametrize("what_if", ["temperature-0", "temperature-1e9", "local--4", "pair-99", "pair"])
def test_numbers_out_of_range_become_the_nearest(what_if: str):
    at = run(PAGE, section="sum", model="random", what_if=what_if, key="999", kind="decoder", step="4")
    keys = len(array(charts(at)["values"]["data"][0]["z"]))
    assert f"This row has {keys} keys; key {keys} is shown." in said(at)
    assert ("This layer has 4 heads; head 4 is taken." in said(at)) == (what_if == "pair-99")


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_text_shows_at_most_64_keys(kind: str):
    text = " ".join(["one two three four five six eight nine ten"] * 12)
    at = run(PAGE, section="sum", model="random", text=text, kind=kind, step="90", source="80")
    shown = charts(at)
    assert len(array(shown["values"]["data"][0]["z"])) == 64
    assert sum(len(json.dumps(chart)) for chart in shown.values()) < 400_000
    assert "keys " in next(
        each["caption"] for each in pictures(at) if "values, one per row" in each["caption"]
    )


def test_a_key_beyond_the_row_is_answered_by_the_last_one_with_a_line():
    at = run("pages/inside_a_head.py", model="random", text="one two three", kind="encoder", key="99")
    assert not at.exception
    assert any("keys; key 4 is shown" in each.value for each in at.caption)
