"""Inside a head without a browser: its numbers, other arithmetic, notations, formulas, the address."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from app_pages import array, click_menu, run, said, slots, strip, view
from closed_form import CASES
from inside_page import KINDS, PAGE, charts, equal, independent, line, pictures, told
from random_models import random_config, random_model
from streamlit.testing.v1 import AppTest

from explorer.app.sections.inside.look import BADGE
from explorer.app.sections.inside.steps import CHANGED, STEPS
from explorer.app.sections.inside.what_if import WHAT_IF
from transformer.storage.directory import save_checkpoint
from transformer.translator import Translator, load_translator

TEXT = CASES["copy"].sentence
ADDED = {"alibi": "-m", "t5": "t_{", "shaw": r"q_i \cdot r_{"}


@cache
def looked(section: str, kind: str = "cross", **more: str) -> AppTest:
    """The same step, which no test touches."""
    return step(section, kind, **more)


def step(section: str, kind: str = "cross", **more: str) -> AppTest:
    """A step at the third row of head 1.2."""
    return run(PAGE, **{"section": section, "kind": kind, "step": "3", "source": "3", kind: "1.2", **more})


def formulas(at: AppTest) -> str:
    """All formulas of the page."""
    return " ".join(each.value for each in at.latex)


def powers(scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The softmax over some of the scores."""
    shares: np.ndarray = np.where(seen, np.exp(scores - scores.max(where=seen, initial=-99)), 0)
    return shares / max(shares.sum(), 1e-30)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", ["random", "copy"])
def test_the_numbers_on_the_page_are_computed_independently(app_models: Path, model: str, kind: str):
    shown = dict[str, dict]()
    for section in STEPS:
        at = looked(section, kind, model=model)
        shown |= charts(at)
        assert "not verified" not in told(at)
        assert BADGE not in told(at)
    translator = load_translator(app_models / model, "cpu")
    true = independent(translator, TEXT, kind, (0, 1), 2)
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
    width = len(true["q"])
    if kind == "cross":
        rows = translator.model.decoder.layers[0].cross_attention.out_proj.weight
        equal(array(shown["output matrix"]["data"][0]["z"]), rows.T[width : 2 * width].detach().numpy())
    added = strip(shown["stream"], "stream") + strip(shown["stream"], "+ update")
    equal(strip(shown["stream"], "= sum"), added)
    products = array(shown["keys"]["data"][0]["customdata"])[..., 1]
    equal(products.sum(1), line(shown["scores"], "q·k"))
    shares = array(shown["values"]["data"][0]["customdata"])[..., 1]
    equal(shares.sum(0), strip(shown["sum"], "head, all keys"))
    filled = slots(looked("weights", kind, model=model))
    name = next(each for each in filled if "Why divide" in each)
    d_k, text = int(re.search(r"\d+", name).group()), str(filled[name]["text"])
    found = re.search(r"over its ([\d,]+) pairs.*the variance ([\d.]+), and ([\d.]+) after", text)
    assert float(found.group(3)) == pytest.approx(float(found.group(2)) / d_k, abs=0.02)
    norm = looked("heads", kind, model=model)
    pre = "pre-norm" in pictures(norm)[0]["caption"]
    assert pre == (model == "random")
    assert ("the feed-forward network reads LayerNorm(sum)" in told(norm)) == (pre and kind != "decoder")
    assert (r"\mathrm{stream}' = \mathrm{LayerNorm}(\mathrm{sum})" in formulas(norm)) != pre


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_other_arithmetic_keeps_the_true_row_and_shows_its_own(app_models: Path, kind: str):
    translator = load_translator(app_models / "random", "cpu")
    true = independent(translator, TEXT, kind, (0, 1), 2)
    q, k, x, a, seen, products = (true[name] for name in ("q", "k", "x", "a", "seen", "products"))
    expected = {
        "no-projections": powers(a @ x / np.sqrt(len(x)), seen),
        "no-scale": powers(products, seen),
        "temperature-0.5": powers(2 * products / np.sqrt(len(q)), seen),
        "hard": np.eye(len(k))[np.where(seen, products, -np.inf).argmax()],
    }
    for what_if, weights in expected.items():
        at = looked("weights", kind, model="random", what_if=what_if)
        shown = charts(at)["scores"]
        equal(np.nan_to_num(line(shown, "softmax")), true["weights"])
        equal(np.nan_to_num(line(shown, "what if: weight")), weights)
        assert told(at).count(BADGE) >= 2
        assert at.query_params["what_if"] == what_if
        assert f"| largest weight | {true['weights'].max():.2f} | {weights.max():.2f} |" in told(at)
    shown = charts(looked("sum", kind, model="random", what_if="no-scale"))
    equal(strip(shown["sum"], "head, what if"), expected["no-scale"] @ true["v"])
    equal(strip(shown["sum"], "head, all keys"), true["b"])


def test_switches_and_keys_go_into_the_address_and_stay_off_other_pages():
    at = step("weights", "encoder", model="random")
    for label, value in (
        ("Other arithmetic", "temperature"),
        ("Number", 0.5),
        ("Key", 4),
        ("Notation", "lecture"),
    ):
        next(each for each in at.selectbox if each.label == label).select(value).run()
    assert not at.exception
    named = {name: at.query_params[name] for name in ("what_if", "key", "notation")}
    assert named == {"what_if": "temperature-0.5", "key": "5", "notation": "lecture"}
    assert r"\hat\alpha" in formulas(at)
    at = click_menu(at, "pages/cross_attention.py")
    assert not {"what_if", "key", "notation"} & set(at.query_params)
    at = step("weights", model="random")
    next(each for each in at.selectbox if each.label == "Key").select(3).run()
    assert at.query_params["source"] == "4"  # in cross-attention, the source token of the cursor
    assert view(at)["source"] == 3


def test_what_cannot_be_read_in_the_address_is_named():
    told = said(run(PAGE, what_if="temperature-nan", kind="both", key="x"))
    assert all(name in told.replace("\\", "") for name in ("what_if", "kind", "key"))


@pytest.mark.parametrize(("what_if", "taken"), [("temperature-0", 0.05), ("temperature-1e9", 20)])
def test_numbers_out_of_range_become_the_nearest(what_if: str, taken: float):
    at = step("sum", "decoder", model="random", what_if=what_if, key="999")
    assert next(each.value for each in at.selectbox if each.label == "Number") == taken
    keys = len(array(charts(at)["values"]["data"][0]["z"]))
    assert f"This row has {keys} keys; key {keys} is shown." in said(at)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_text_shows_at_most_64_keys(kind: str):
    text = " ".join(["one two three four five six eight nine ten"] * 12)
    at = step("sum", kind, model="random", text=text, step="90", source="80")
    shown = charts(at)
    assert len(array(shown["values"]["data"][0]["z"])) == 64
    assert sum(len(json.dumps(chart)) for chart in shown.values()) < 400_000
    assert any("values, one per row · keys " in each["caption"] for each in pictures(at))


@pytest.fixture
def twins(own_models: Path, translator: Translator) -> None:
    """Random models that place their tokens by a bias or a rotation."""
    for name in (*ADDED, "rotary"):
        changes = {"vocab_size": translator.config.vocab_size, "positions": name, "norm": "pre"}
        state = random_model(**changes).state_dict()
        save_checkpoint(own_models / name, random_config(**changes), state, translator.tokenizer)


@pytest.mark.usefixtures("twins")
def test_what_an_encoding_adds_is_in_the_formula_and_in_the_numbers():
    for rule, formula in ADDED.items():
        for kind in ("encoder", "decoder"):
            at = step("weights", kind, model=rule, what_if="no-scale")
            assert f"B_{{ij}} = {formula}" in formulas(at)
            assert "+ B_i" in formulas(at)
            assert ("M_{ij}" in formulas(at)) == (kind == "decoder")
            scores = charts(at)["scores"]
            equal(line(scores, "÷ √d_k") + line(scores, "+ position"), line(scores, "score"))
            shown = line(scores, "masked" if kind == "decoder" else "score").astype(float)
            seen = np.isfinite(shown)
            equal(line(scores, "softmax")[seen], powers(shown, seen)[seen])
            undivided = line(scores, "q·k") + line(scores, "+ position")
            equal(line(scores, "what if: score")[seen], undivided[seen])
    at = step("weights", model="alibi")
    assert "B_" not in formulas(at)
    assert "M_" not in formulas(at)
    assert "Positions add nothing here" in told(at)
    at = step("weights", "encoder", model="rotary", key="5")
    assert r"\tilde q_i = q_i R_i" in formulas(at)
    assert r"\tilde Q \tilde K" in formulas(at)
    vectors = charts(step("projections", "encoder", model="rotary", key="5"))["vectors"]
    turned = [strip(vectors, each["name"]) for each in vectors["data"] if "turned" in each["name"]]
    equal(np.array(turned[0] @ turned[1]), np.array(line(charts(at)["scores"], "q·k")[4]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_notation_changes_the_symbols_and_none_of_the_numbers(kind: str):
    own, other = {}, {}
    for section in ("path", "weights", "sum"):
        paper, lecture = (
            looked(section, kind, model="random", **given) for given in ({}, {"notation": "lecture"})
        )
        assert r"\mathrm{head}" not in formulas(lecture)
        assert r"b = V\,\mathrm{softmax}" in formulas(lecture)
        assert r"\hat\alpha" in formulas(lecture) or section == "path"
        assert r"\alpha" not in formulas(paper)
        own |= charts(paper)
        other |= charts(lecture)
    np.testing.assert_array_equal(strip(own["sum"], "head, all keys"), strip(other["sum"], "b, all keys"))
    np.testing.assert_array_equal(line(own["scores"], "softmax"), line(other["scores"], "softmax"))
    boxes = " ".join(each["text"] for each in other["drawing"]["layout"]["annotations"])
    assert "α̂ = " in boxes
    assert "W<sup>q</sup>" in boxes


@pytest.mark.parametrize("name", STEPS)
def test_a_step_has_its_heading_a_next_one_and_figures_that_say_what_colours_mean(name: str):
    at = step(name, model="random", what_if="no-scale")
    assert {slot.partition(".")[0] for slot in slots(at)} == {name, *([WHAT_IF] if name in CHANGED else [])}
    place = [*STEPS].index(name)
    assert f"##### {place + 1} · {STEPS[name].title}" in [each.value for each in at.markdown]
    following = [f"Next step: {STEPS[each].title.lower()}" for each in [*STEPS][place + 1 : place + 2]]
    assert [each.label for each in at.button if each.label.startswith("Next step")] == following
    for each in pictures(at):
        assert each["alt"]
        assert bool(each["legends"]) == (each["name"] != "drawing")
        assert each["badge"] is not None
    for button in at.button:
        if button.label in following:
            assert button.click().run().session_state["state"].section == [*STEPS][place + 1]
