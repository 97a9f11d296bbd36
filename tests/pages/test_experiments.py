"""The section Ready experiments: each card says what its file says, and opens the changes it speaks of."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from app_pages import ROOT, run, said, words

from lab.experiments.answers import Answer, Control, Moved, answers_of
from lab.experiments.questions import EXPERIMENTS
from ui.server import catalogue
from ui.views.what_if.experiments import finding

PAGE = "pages/what_if.py"
DIRECTORY = ROOT / "assets" / "models" / "en-de"
bundled = pytest.mark.skipif(
    not (DIRECTORY / "model.safetensors").exists(), reason="the bundled model is not here"
)
HEAD = Answer(
    *("mean", "ablate_cross_1.1_mean", None, "Ein Hund.", "Ein Hund.", -1.234, 1.5, 4),
    Moved(1, "▁Hund", 0.97, 0.35),
    Control(7, 2, -2.0, 0.5),
)


def shipped() -> dict[str, tuple[Answer, ...]]:
    return answers_of(DIRECTORY)


@bundled
def test_every_card_has_its_question_its_finding_and_what_it_does_not_prove():
    at = run(PAGE, model="en-de", view="experiments")
    told = words(at)
    for each in EXPERIMENTS:
        assert each.question in told
        assert each.not_proved in told
        for answer in shipped()[each.name]:
            assert finding(answer) in told
            assert answer.base.rstrip(".") in told.replace("\\", "")


@bundled
@pytest.mark.parametrize("each", EXPERIMENTS, ids=lambda each: each.name)
def test_a_card_opens_its_sentence_with_its_changes_and_the_page_shows_the_same_translation(each):
    at = run(PAGE, model="en-de", view="experiments")
    answer = shipped()[each.name][-1]
    at.button(f"experiment.{each.name}.{len(shipped()[each.name]) - 1}").click().run()
    assert not at.exception
    assert not at.error
    assert at.query_params["changes"] == answer.changes
    assert at.query_params["text"] == each.text
    assert each.question in words(at).replace("\\", "")
    assert "view" not in at.query_params
    assert at.query_params.get("target") == answer.target
    now = catalogue.translator("en-de").translate(each.text).text
    assert now == answer.base


@bundled
def test_another_model_shows_what_the_first_one_answered_and_says_so():
    at = run(PAGE, model="random", view="experiments")
    assert "That opens en" in words(at)
    at.button("experiment.aligner.0").click().run()
    assert at.query_params["model"] == catalogue.DEFAULT


@bundled
@pytest.mark.parametrize(("model", "named"), [("en-de", False), ("random", True)])
def test_a_suggestion_names_the_model_that_answered_if_it_is_another(model, named):
    assert ("** answered:" in words(run(PAGE, model=model))) == named


def test_without_any_answers_the_section_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(catalogue, "DEFAULT", "random")
    at = run(PAGE, model="copy", view="experiments")
    assert "experiments.json" in said(at)


def test_a_finding_says_what_stayed_what_it_cost_and_what_other_heads_do():
    told = finding(HEAD)
    assert "The translation stays the same" in told
    assert "**1.23 nats** less probable (Σ|Δ| of its tokens: 1.50 nats), most of all “Hund”" in told
    assert "97\u00a0% before, 35\u00a0% now" in told
    assert "7 other heads of the layer moves it by −2.00 to +0.50 nats; 2 move it as far." in told


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"changed": "Eine Katze."}, r"It becomes \*\*Eine Katze"),
        ({"changed": ""}, r"becomes \*\*\(nothing\)"),
        ({"changed": None}, r"^The translation above is \*\*1"),
        ({"delta": 0.9}, r"0\.90 nats\*\* more probable \(Σ\|Δ\| of its tokens: 1\.50 nats\)\."),
        ({"delta": -0.02}, r"gain \*\*0\.74 nats\*\* together, others lose \*\*0\.76\*\*"),
        ({"delta": 0.001, "moved": 0.002}, "as probable as before"),
    ],
)
def test_a_finding_has_words_for_every_outcome(values: dict[str, object], text: str):
    assert re.search(text, finding(replace(HEAD, **values)))


def test_an_answer_without_a_comparison_says_only_what_became_of_the_translation():
    told = finding(replace(HEAD, changed="x", delta=None, most=None, control=None))
    assert told.endswith("becomes **x**")
