"""Batches of many texts: the same numbers as one by one, in the order of the texts."""

from __future__ import annotations

import numpy as np
import pytest

from transformer import batches
from transformer.translator import Translator

TEXTS = ["one two three", "four", "nine ten one two six", "five stop", "two"]


@pytest.mark.parametrize("positions", [batches.BATCH_POSITIONS, 8])
def test_greedy_log_probabilities_are_those_of_each_text_alone(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, positions: int
):
    monkeypatch.setattr(batches, "BATCH_POSITIONS", positions)
    found = batches.greedy(translator, TEXTS)
    for text, (written, log_probs) in zip(TEXTS, found, strict=True):
        alone = translator.translate(text, beam_size=1, capture=False)
        assert written == alone.text
        np.testing.assert_allclose(log_probs, alone.log_probs, atol=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_translations_come_in_the_order_of_the_texts(translator: Translator, beam_size: int):
    alone = [translator.translate(text, beam_size=beam_size, capture=False).text for text in TEXTS]
    assert batches.translate_batched(translator, TEXTS, beam_size) == alone


def test_no_texts_need_no_batch(translator: Translator):
    assert batches.greedy(translator, []) == []
    assert batches.translate_batched(translator, [], 1) == []
