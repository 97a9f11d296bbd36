"""What opens first, and the words under the target words."""

from __future__ import annotations

from pathlib import Path

import pytest
from closed_form import CASES
from sources import named

from lenses.words.alignment import Aligner
from linked.view import EXAMPLE
from transformer.runs.translator import load_translator
from ui.server import runs
from ui.server.examples import Claim, Example
from ui.server.opened import Opened
from ui.server.runs import Request

CASE = CASES["shift"]
CLAIM = Claim("It shows.", "neun", "nine", 0, 0, 0.5, 0.9)


HEAD = "alignment head (head 1 of layer 1, row that predicts the word)"


@pytest.fixture(autouse=True)
def first_head(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runs, "default_head", lambda name, kind: (0, 0))
    monkeypatch.setattr(runs, "aligner", lambda name: Aligner(((0, 0),), "predicted"))


def opened(models: dict[str, Path], example: Example | None = None) -> Opened:
    translation = load_translator(models["shift"]).translate(CASE.sentence)
    return Opened(Request(named("shift"), CASE.sentence, "greedy", None), translation, example)


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
