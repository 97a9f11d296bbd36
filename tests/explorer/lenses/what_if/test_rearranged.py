"""The same words at other positions: only absolute encodings notice a shift, and all but none an exchange."""

from __future__ import annotations

import numpy as np
import pytest
from random_models import random_model

from explorer.lenses.what_if.rearranged import encode_moved, swap_words, swapped_order, words_of
from transformer import Translator
from transformer.config import RELATIVE
from transformer.encodings import REGISTRY
from transformer.translator import InputError

TEXT = "one two three four five"


@pytest.fixture(scope="module", params=REGISTRY)
def translator(request, tokenizer):
    model = random_model(
        vocab_size=tokenizer.vocab_size, norm="pre", positions=request.param, max_positions=64, scale=0.2
    )
    return Translator(model, tokenizer, name=request.param)


def test_a_sentence_moved_by_nothing_is_itself_and_only_absolute_encodings_notice_more(translator):
    own = translator.translate(TEXT, max_length=2).attention
    here, there = (encode_moved(translator, TEXT, offset) for offset in (0, 20))
    moves = []
    for layer in range(2):
        weights = [each.weights("encoder", layer) for each in (own, here, there)]
        np.testing.assert_allclose(weights[1], weights[0], atol=1e-6)
        moves.append(np.abs(weights[2] - weights[1]).max())
    assert (max(moves) < 1e-4) == (translator.name in RELATIVE)
    assert there.audit().passed
    if translator.name in {"learned", "sinusoidal", "rotary"}:
        with pytest.raises(InputError, match="position 66 of 64 positions"):
            encode_moved(translator, TEXT, 60)


def test_only_a_model_without_encoding_does_not_notice_a_swap(translator):
    swapped = swap_words(translator, TEXT, 0, 3)
    assert swapped.translation.source_text == "four two three one five"
    assert (max(swapped.change) < 1e-4) == (translator.name == "none")
    assert len(swapped.change) == 6
    assert swapped.translation.attention.audit().passed


def test_the_order_says_where_each_token_stood():
    tokens = ("▁A", "▁b", "c", "▁d", ".", "</s>")
    assert [word.text for word in words_of(tokens)] == ["A", "bc", "d"]
    assert swapped_order(tokens, 1, 0) == (1, 2, 0, 3, 4, 5)
    assert swapped_order(tokens, 0, 2) == (3, 1, 2, 0, 4, 5)
    assert swapped_order(tokens, 1, 1) == tuple(range(6))
    for one, other in ((0, 3), (-1, 0)):
        with pytest.raises(IndexError, match="3 words"):
            swapped_order(tokens, one, other)
