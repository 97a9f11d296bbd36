"""The bundled model fulfils what each example sentence claims."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from explorer.app.server import catalogue, models, surveys
from explorer.app.server.examples import examples, text_on
from explorer.lenses.words.groups import find_word
from explorer.linked.view.examples import Example, claim_step
from transformer.translator import Translator, load_translator

MODELS = sorted(path.parent.name for path in catalogue.BUNDLED.glob("*/examples.json"))
EVERY = [
    pytest.param(name, example, id=f"{name}, {example.label}")
    for name in MODELS
    for example in examples(models.find(name))
]


@cache
def bundled(name: str) -> Translator:
    return load_translator(catalogue.BUNDLED / name)


@pytest.mark.parametrize(("name", "example"), EVERY)
def test_the_bundled_model_fulfils_the_claim(name: str, example: Example):
    claim, translation = example.claim, bundled(name).translate(example.text)
    step = claim_step(example, translation.target_tokens)
    place = find_word(translation.source_tokens, claim.source)
    assert step is not None
    assert place is not None
    row = translation.head("cross", claim.layer, claim.head).weights[step]
    weight = row[place[0] : place[1] + 1].sum()
    assert weight >= claim.least
    assert weight == pytest.approx(claim.weight, abs=0.01)
    assert place[0] <= int(np.argmax(row)) <= place[1]


@pytest.mark.parametrize(("name", "example"), EVERY)
def test_every_target_word_has_a_gloss(name: str, example: Example):
    words = bundled(name).translate(example.text).text.translate(str.maketrans("", "", ".,!?")).split()
    assert [word for word in words if word not in example.gloss] == []


def test_any_other_model_opens_on_the_first_example():
    assert text_on(models.find(catalogue.DEFAULT), None) == examples(models.find(catalogue.DEFAULT))[0].text
    assert text_on(models.find("positions/rotary"), None) == examples(models.find("en-de"))[0].text
    assert text_on(None, "Own words.") == "Own words."
    assert surveys.named(models.find(catalogue.DEFAULT)) == "Tatoeba"


def test_a_model_has_examples_of_its_own_or_those_of_the_first_one():
    assert catalogue.DEFAULT in MODELS
    assert len({tuple(each.text for each in examples(models.find(name))) for name in MODELS}) > 1
    assert examples(models.find("positions/rotary")) == examples(models.find("en-de"))


@pytest.mark.parametrize(("name", "example"), EVERY)
def test_the_other_sentence_has_one_other_word_and_as_many_tokens(name: str, example: Example):
    one, other = example.text.split(), example.other.split()
    assert sum(a != b for a, b in zip(one, other, strict=True)) == 1
    assert (
        len({len(bundled(name).translate(text).source_tokens) for text in (example.text, example.other)}) == 1
    )
