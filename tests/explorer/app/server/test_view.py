"""What opens first, and the words under the target words."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from closed_form import CASES
from sources import named

from explorer.app.server import models, runs
from explorer.app.server.runs import Request
from explorer.app.server.source import Source, per_model
from explorer.app.server.view import View, per_run
from explorer.lenses.words.alignment import Aligner
from explorer.linked.view import EXAMPLE
from explorer.linked.view.examples import Claim, Example
from transformer.translator import load_translator

CASE = CASES["shift"]
CLAIM = Claim("It shows.", "neun", "nine", 0, 0, 0.5, 0.9)


HEAD = "alignment head (head 1 of layer 1, row that predicts the word)"


@pytest.fixture(autouse=True)
def first_head(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runs, "default_head", lambda name, kind: (0, 0))
    monkeypatch.setattr(runs, "aligner", lambda name: Aligner(((0, 0),), "predicted"))


def opened(models: dict[str, Path], example: Example | None = None) -> View:
    translation = load_translator(models["shift"]).translate(CASE.sentence)
    return View(Request(named("shift"), CASE.sentence, "greedy", None), translation, example)


def test_an_own_sentence_opens_on_a_word_and_its_glosses_name_the_head(closed_form_models):
    own = opened(closed_form_models)
    assert own.claimed_step is None
    assert CASE.target_tokens[own.first_step] != "</s>"
    assert {gloss["origin"] for gloss in own.glosses.values()} == {HEAD}


def test_an_example_opens_on_its_claim_and_its_own_glosses_come_first(closed_form_models):
    example = Example("shift", CASE.sentence, "", CLAIM, {"neun": "the number nine"})
    shown = opened(closed_form_models, example)
    place = CASE.target_tokens.index("▁neun")
    assert shown.first_step == shown.claimed_step == place
    assert shown.glosses[place] == {"text": "the number nine", "origin": EXAMPLE}
    assert {gloss["origin"] for at, gloss in shown.glosses.items() if at != place} == {HEAD}


def test_a_claim_whose_word_does_not_occur_leaves_the_choice_to_the_head(closed_form_models):
    other = Claim("It shows.", "Haus", "house", 0, 0, 0.5, 0.9)
    shown = opened(closed_form_models, Example("shift", CASE.sentence, "", other, {}))
    assert shown.claimed_step is None
    assert shown.first_step == opened(closed_form_models).first_step


def test_a_value_of_a_run_is_made_once_for_each_run_and_each_position_not_for_what_listens(
    closed_form_models,
):
    made: list[tuple[str, int]] = []

    @per_run(4)
    def value(opened: View, layer: int, *, tell: Callable[[], object]) -> int:
        tell()
        made.append((opened.request.text, layer))
        return layer

    own, heard = opened(closed_form_models), list[str]()
    assert [value(own, layer, tell=lambda: heard.append("x")) for layer in (0, 1, 0)] == [0, 1, 0]
    assert value(own, 1, tell=pytest.fail) == 1
    assert made == [(CASE.sentence, 0), (CASE.sentence, 1)]
    again = replace(own, translation=replace(own.translation))
    assert value(again, 1, tell=lambda: heard.append("y")) == 1
    assert heard == ["x", "x", "y"]


def test_a_value_of_a_model_is_made_again_once_the_model_was_loaded_again(
    closed_form_models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shutil.copytree(closed_form_models["shift"], tmp_path / "mine")
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    made: list[str] = []

    @per_model(4)
    def value(source: Source, text: str) -> str:
        made.append(text)
        return source.translator().translate(text).text

    found = models.find("mine")
    assert value(found, CASE.sentence) == value(found, CASE.sentence)
    assert len(made) == 1
    os.utime(tmp_path / "mine" / "config.json", ns=(1, time.time_ns() + 10**9))
    later = models.find("mine")
    assert later != found
    assert value(later, CASE.sentence)
    assert len(made) == 2
