"""Inside a head: its numbers, other arithmetic, what encodings add, and a query of one's own."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from app_pages import array, named_charts, run, said, strip, words
from closed_form import CASES
from inside_page import PAGE, charts, equal, independent, line, told
from random_models import random_config, random_model
from streamlit.testing.v1 import AppTest

from explorer.app.address.page_values import Build
from explorer.app.lessons import files
from explorer.app.sections.inside.look import BADGE
from explorer.app.server import examples, models, runs
from explorer.app.server.run_key import RunKey
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
    return run(
        PAGE, **{"section": section, "kind": kind, "step": "3", "source": "3", kind: "1.2", **more}
    )


def formulas(at: AppTest) -> str:
    """All formulas of the page."""
    return " ".join(each.value for each in at.latex)


def powers(scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The softmax over some of the scores."""
    shares: np.ndarray = np.where(seen, np.exp(scores - scores.max(where=seen, initial=-99)), 0)
    return shares / max(shares.sum(), 1e-30)


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


# --- a query of one's own: what is drawn is computed, and what is drawn is graded ----------------

OWN = examples.text_on(models.find("en-pt"), None)


def built(**params: str) -> AppTest:
    return run(PAGE, model="en-pt", text=OWN, section="build", **params)


def weights(at: AppTest) -> np.ndarray:
    return array(named_charts(at)["build row"]["data"][0]["y"])


def row(at: AppTest, kind: str = "cross") -> np.ndarray:
    """The softmax of the query that the address names, over the head's recorded keys."""
    now = at.session_state["state"]
    recorded = runs.translate(RunKey.of(now, models.find(now.model), OWN), whole=True)
    keys = recorded.head(kind, *getattr(now, kind)).key.astype(np.float64)
    asked = now.values(Build)
    first, second = (keys[key] / np.linalg.norm(keys[key]) for key in asked.two)
    scores = keys @ (asked.length * (asked.a * first + asked.b * second)) / np.sqrt(keys.shape[1])
    return powers(scores, np.ones(len(scores), bool))


def lengthened(at: AppTest, value: float) -> AppTest:
    return (
        next(each for each in at.number_input if each.label.startswith("l ·"))
        .set_value(value)
        .run()
    )


@pytest.mark.parametrize("kind", ["encoder", "cross"])
def test_the_weights_that_are_drawn_are_those_of_the_query(kind: str):
    at = built(kind=kind, two="1.5", a="6", b="-5", length="3")
    assert weights(at) == pytest.approx(row(at, kind), abs=1e-5)
    at = lengthened(at, 7.5)
    assert at.query_params["length"] == "7.5"
    assert weights(at) == pytest.approx(row(at, kind), abs=1e-5)


def test_a_query_that_reaches_the_goal_is_the_answer_of_the_step():
    steps = files.find("copy").steps
    step = next(
        i for i, each in enumerate(steps) if each.question and each.question.quantity == "build"
    )
    at = built(goal="copy", lesson=f"copy.{step + 1}", two="1.5", a="6", b="-5", length="1")
    assert weights(at)[0] < 0.95
    assert "Not yet." in words(at)
    assert at.session_state["visit"].silent is None
    assert at.session_state["visit"].lesson_notes["copy"][step] is None
    at = lengthened(at, 10.0)
    assert weights(at)[0] == pytest.approx(row(at)[0], abs=1e-5)
    assert weights(at)[0] >= 0.95
    note = at.session_state["visit"].lesson_notes["copy"][step]
    assert note.right
    assert "a = 6, b = −5, l = 10" in note.chose
    assert [each in words(at) for each in ("**Right.**", "**Reached.**")] == [True, True]
    at = built(goal="average", lesson="copy.4", two="1.5", a="6", b="-5", length="10")
    assert at.session_state["visit"].lesson_notes["copy"][3] is None, "an answer to another goal"


def test_where_the_keys_forbid_it_the_page_says_so_with_the_best_and_hidden_keys_are_replaced():
    told = [words(built(goal="average", two=two)) for two in ("1.2", "2.3", "3.4", "4.5")]
    best = r"The best query of this plane gives each at least (0\.\d\d), with (0\.\d\d) on"
    forbidden = [re.search(best, each) for each in told if "choose other keys" in each]
    assert forbidden
    assert all(float(each[1]) < 0.48 and float(each[2]) > 0 for each in forbidden)
    at = run(PAGE, section="build", kind="decoder", step="3", two="1.9")
    assert not at.error
    assert "build row" in named_charts(at)
    assert "only one key" in said(run(PAGE, section="build", kind="decoder", step="1"))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_matrix_form_is_the_whole_head(app_models: Path, kind: str):
    drawn = charts(looked("matrices", kind, model="random"))
    view = load_translator(app_models / "random").translate(TEXT).head(kind, 0, 1)
    found = [
        array(trace["z"]) for name in ("sentence", "attention") for trace in drawn[name]["data"]
    ]
    for one, other in zip(
        found, (view.query, view.key, view.value, view.weights, view.output), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-5)
    np.testing.assert_allclose(found[3] @ found[2], found[4], atol=1e-5)
