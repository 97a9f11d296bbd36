"""The bundled model fulfils what each example sentence claims."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.runs.translator import Translator, load_translator
from transformer.text.words import find_word
from ui.server import catalogue
from ui.server.background import surveys
from ui.server.examples import Example, claim_step, examples, text_on

MODEL = catalogue.BUNDLED / catalogue.DEFAULT
needs_model = pytest.mark.skipif(not MODEL.is_dir(), reason="the bundled model is not in this checkout")


@pytest.fixture(scope="module")
def bundled() -> Translator:
    return load_translator(MODEL)


@needs_model
@pytest.mark.parametrize("example", examples(), ids=lambda example: example.label)
def test_the_bundled_model_fulfils_the_claim(bundled: Translator, example: Example):
    claim, translation = example.claim, bundled.translate(example.text)
    step = claim_step(example, translation.target_tokens)
    place = find_word(translation.source_tokens, claim.source)
    assert step is not None
    assert place is not None
    row = translation.head("cross", claim.layer, claim.head).weights[step]
    weight = row[place[0] : place[1] + 1].sum()
    assert weight >= claim.least
    assert weight == pytest.approx(claim.weight, abs=0.01)
    assert place[0] <= int(np.argmax(row)) <= place[1]


@needs_model
@pytest.mark.parametrize("example", examples(), ids=lambda example: example.label)
def test_every_target_word_has_a_gloss(bundled: Translator, example: Example):
    words = bundled.translate(example.text).text.translate(str.maketrans("", "", ".,!?")).split()
    assert [word for word in words if word not in example.gloss] == []


def test_any_other_model_opens_on_the_first_example():
    assert text_on(None, None) == examples()[0].text
    assert text_on(None, "Own words.") == "Own words."
    assert surveys.named(catalogue.DEFAULT) == "Tatoeba"
