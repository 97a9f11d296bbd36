"""Other weights in the place of a head's own, against interventions that set and replace rows."""

from __future__ import annotations

import numpy as np
import pytest
from random_models import random_model

from explorer.lenses.measures.rewired import rewired
from transformer import Capture, interventions
from transformer.translator import Translator

KINDS = ["encoder", "decoder", "cross"]


@pytest.fixture(scope="module", params=["pre", "post"])
def run(request, translator):
    size = translator.config.vocab_size
    network = random_model(vocab_size=size, norm=request.param, scale=0.6)
    model = Translator(network.eval(), translator.tokenizer, name="random")
    return model, model.force("one two three nine", "two one four", capture=Capture(residual=True))


def changed(run, change) -> np.ndarray:
    model, translation = run
    found = model.force(translation.source_text, translation.text, interventions=[change])
    return np.subtract(found.log_probs, translation.log_probs)


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_of_other_weights_is_that_row_set(run, kind: str):
    model, translation = run
    random = np.random.default_rng(3)
    mask = translation.mask(kind, 1, 2)
    maps = random.dirichlet(np.ones(mask.shape[1]), (2, len(mask))).astype(np.float32) * mask
    maps /= maps.sum(-1, keepdims=True)
    found = rewired(model, translation, kind, 1, 2, maps, query=2)
    for each, row in zip(found, maps[:, 2], strict=True):
        change = interventions.set_row(kind, 1, 2, 2, dict(enumerate(map(float, row))))
        np.testing.assert_allclose(each, changed(run, change), atol=2e-4)


def test_its_own_weights_change_nothing(run):
    model, translation = run
    found = rewired(model, translation, "cross", 1, 2, translation.weights("cross", 1, 2)[None])
    np.testing.assert_allclose(found, 0, atol=1e-5)


def test_there_is_no_such_query(run):
    model, translation = run
    with pytest.raises(IndexError, match="no query 9"):
        rewired(model, translation, "cross", 1, 2, translation.weights("cross", 1, 2)[None], query=9)
