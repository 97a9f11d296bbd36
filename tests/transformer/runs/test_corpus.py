"""Batches of many texts: the same numbers as one by one, in the order of the texts."""

from __future__ import annotations

import numpy as np
import pytest

from transformer import batches
from transformer.batches import hypotheses
from transformer.translator import Translator

TEXTS = ["one two three", "four", "nine ten one two six", "five stop", "two"]


def test_greedy_log_probabilities_are_those_of_each_text_alone(translator: Translator):
    for text, output in zip(TEXTS, hypotheses(translator, TEXTS, 1), strict=True):
        alone = translator.translate(text, beam_size=1, capture=False)
        assert output.token_ids == alone.target_ids
        np.testing.assert_allclose(output.log_probs, alone.log_probs, atol=1e-4)


@pytest.mark.parametrize(("beam_size", "positions"), [(1, 4096), (3, 4096), (1, 8)])
def test_translations_come_in_the_order_of_the_texts(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, beam_size: int, positions: int
):
    monkeypatch.setattr(batches, "BATCH_POSITIONS", positions)
    alone = [translator.translate(text, beam_size=beam_size, capture=False).text for text in TEXTS]
    assert batches.translate_all(translator, TEXTS, beam_size) == alone


def test_no_texts_need_no_batch(translator: Translator):
    assert hypotheses(translator, []) == []
    assert batches.translate_all(translator, [], 1) == []
