"""What "Inside a head" says: formulas for each encoding, two notations, sections, legends, reasons."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from app_pages import run, slots, strip
from inside_page import KINDS, PAGE, charts, equal, line, pictures, told
from random_models import random_config, random_model
from streamlit.testing.v1 import AppTest

from explorer.app.sections.inside.steps import CHANGED, STEPS
from explorer.app.sections.inside.what_if import WHAT_IF
from transformer.storage.directory import save_checkpoint
from transformer.translator import Translator

ADDED = {"alibi": "-m", "t5": "t_{", "shaw": r"q_i \cdot r_{"}


def formulas(at: AppTest) -> str:
    """All formulas of the page."""
    return " ".join(each.value for each in at.latex)


def keys(at: AppTest) -> set[str]:
    """The sections of the page, by the name that their containers carry."""
    return {name.partition(".")[0] for name in slots(at)}


@pytest.fixture
def twins(own_models: Path, translator: Translator) -> None:
    """Random models that place their tokens by a bias or a rotation."""
    for name in (*ADDED, "rotary"):
        changes = {"vocab_size": translator.config.vocab_size, "positions": name, "norm": "pre"}
        model = random_model(**changes)
        config = random_config(**changes)
        save_checkpoint(own_models / name, config, model.state_dict(), translator.tokenizer)


@pytest.mark.usefixtures("twins")
@pytest.mark.parametrize("rule", ADDED)
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_what_an_encoding_adds_is_in_the_formula_and_in_the_numbers(rule: str, kind: str):
    at = run(PAGE, section="weights", model=rule, kind=kind, step="3", source="3")
    assert f"B_{{ij}} = {ADDED[rule]}" in formulas(at)
    assert "+ B_i" in formulas(at)
    assert ("M_{ij}" in formulas(at)) == (kind == "decoder")
    scores = charts(at)["scores"]
    equal(line(scores, "÷ √d_k") + line(scores, "+ position"), line(scores, "score"))
    shown = line(scores, "masked" if kind == "decoder" else "score").astype(float)
    seen = np.isfinite(shown)
    powers = np.exp(shown[seen] - shown[seen].max())
    equal(line(scores, "softmax")[seen], powers / powers.sum())


@pytest.mark.usefixtures("twins")
def test_cross_attention_of_a_relative_encoding_adds_nothing():
    at = run(PAGE, section="weights", model="alibi", kind="cross", step="3")
    assert "B_" not in formulas(at)
    assert "M_" not in formulas(at)
    assert "Positions add nothing inside cross-attention" in told(at)


@pytest.mark.usefixtures("twins")
def test_a_rotation_is_written_and_the_turned_vectors_give_the_product():
    link = {"model": "rotary", "kind": "encoder", "source": "3", "key": "5"}
    at = run(PAGE, section="weights", **link)
    assert r"\tilde q_i = q_i R_i" in formulas(at)
    vectors = charts(run(PAGE, section="projections", **link))["vectors"]
    names = [each["name"] for each in vectors["data"]]
    turned = [strip(vectors, name) for name in names if "turned" in name]
    assert len(turned) == 2
    product = line(charts(at)["scores"], "q·k")[4]
    equal(np.array([turned[0] @ turned[1]]), np.array([product]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_notation_changes_the_symbols_and_none_of_the_numbers(kind: str):
    link = {"model": "random", "kind": kind, "step": "3", "source": "3"}
    own, other = {}, {}
    for step in ("path", "weights", "sum"):
        paper, lecture = (run(PAGE, section=step, notation=name, **link) for name in ("paper", "lecture"))
        assert "head = " not in formulas(lecture).replace(r"\mathrm{head} = \mathrm{softmax}", "")
        assert r"\hat\alpha" in formulas(lecture)
        assert r"\alpha" not in formulas(paper)
        own |= charts(paper)
        other |= charts(lecture)
    np.testing.assert_array_equal(strip(own["sum"], "head, all keys"), strip(other["sum"], "b, all keys"))
    np.testing.assert_array_equal(line(own["scores"], "softmax"), line(other["scores"], "softmax"))
    boxes = " ".join(each["text"] for each in other["drawing"]["layout"]["annotations"])
    assert "α̂ = " in boxes
    assert "W<sup>q</sup>" in boxes


def test_the_switch_of_the_notation_goes_into_the_address():
    at = run(PAGE, section="weights", model="random")
    assert "notation" not in at.query_params
    next(each for each in at.selectbox if each.label == "Notation").select("lecture").run()
    assert at.query_params["notation"] == "lecture"
    assert r"\hat\alpha" in formulas(at)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_has_its_heading_a_next_one_and_figures_that_say_what_colours_mean(step: str):
    at = run(PAGE, section=step, model="random", what_if="no-scale")
    assert keys(at) == {step, *([WHAT_IF] if step in CHANGED else [])}
    place = [*STEPS].index(step)
    assert f"##### {place + 1} · {STEPS[step].title}" in [each.value for each in at.markdown]
    following = [STEPS[name].title.lower() for name in [*STEPS][place + 1 : place + 2]]
    labels = [each.label for each in at.button if each.label.startswith("Next step")]
    assert labels == [f"Next step: {each}" for each in following]
    for each in pictures(at):
        assert each["alt"]
        assert bool(each["legends"]) == (each["name"] not in {"drawing", "saturation"})
        assert (each["badge"] is None) == (each["name"] == "saturation")


@pytest.mark.parametrize("kind", KINDS)
def test_the_reason_for_the_root_is_measured_on_this_head(kind: str):
    at = run(PAGE, section="weights", model="copy", kind=kind, step="2", source="2")
    text = str(slots(at)["weights.divide"]["text"])
    found = re.search(r"over its ([\d,]+) pairs.*the variance ([\d.]+), and ([\d.]+) after", text)
    products, divided = float(found.group(2)), float(found.group(3))
    vectors = charts(run(PAGE, section="projections", model="copy", kind=kind, step="2", source="2"))[
        "vectors"
    ]
    d_head = len(strip(vectors, "q"))
    assert divided == pytest.approx(products / d_head, abs=0.01 + 0.1 / d_head)


@pytest.mark.parametrize("model", ["random", "copy"])
def test_the_reader_of_the_sum_is_the_one_of_the_model_s_norm(model: str):
    at = run(PAGE, section="heads", model=model)
    pre = "pre-norm" in pictures(at)[0]["caption"]
    assert ("reads LayerNorm(sum)" in told(at)) == pre
    assert (r"\mathrm{stream}' = \mathrm{LayerNorm}(\mathrm{sum})" in formulas(at)) != pre
