"""The sink of a head: its token, its rows, and dimensions that stand out."""

from __future__ import annotations

import pytest
from random_models import random_translator

from explorer.lenses.circuits.sinks import OUTLIER, sink
from transformer.config import AttentionKind
from transformer.hooks import Capture

TEXTS = ("one two three four", "two one")


@pytest.fixture(scope="module", params=["pre", "post"])
def translator(request, tokenizer):
    return random_translator(tokenizer, request.param)


@pytest.mark.parametrize("kind", AttentionKind)
def test_a_sink_names_its_token_and_counts_its_rows(translator, kind):
    runs = [translator.translate(text, capture=Capture(residual=True)) for text in TEXTS]
    shares: list[float] = []
    found = sink(translator, runs, (kind, 1, 2), shares.append)
    assert found.token == ("<s>" if kind is AttentionKind.DECODER else "</s>")
    assert found.rows == sum(len(run.target_ids) for run in runs)
    assert shares == [0.5, 1]


def test_dimensions_far_above_the_others_are_outliers(tokenizer):
    translator = random_translator(tokenizer, "post")
    translator.model.embedding.weight.data[translator.config.eos_id, 3] = 500
    runs = [translator.translate(text, capture=Capture(residual=True)) for text in TEXTS]
    assert sink(translator, runs, (AttentionKind.ENCODER, 0, 0)).outliers == (3,)
    assert OUTLIER > 1
