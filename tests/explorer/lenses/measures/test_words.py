"""Whole source words taken away: which pieces they have, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.lenses.measures.effect import Effects
from explorer.lenses.measures.stream import UnmeasuredError
from explorer.lenses.measures.words import source_words, word_effect
from transformer import Capture


@pytest.fixture(scope="module")
def run(translator):
    return translator, translator.force("one zebra three", "two one four", capture=Capture(residual=True))


def test_words_hold_all_their_pieces_and_the_end_is_one_of_them(run):
    translation = run[1]
    words = source_words(translation)
    assert [at for word in words for at in word.indices] == list(range(len(translation.source_tokens)))
    assert words[-1].text == "</s>"
    assert any(len(word.indices) > 1 for word in words)


def test_a_word_hidden_is_not_the_word_left_out(run):
    hidden = word_effect(*run)[:, 0]
    out = Effects(*run).left_out(source_words(run[1])[0].indices).numpy()
    assert np.abs(hidden - out).max() > 1e-3


def test_what_has_no_source_words_is_refused(run):
    with pytest.raises(UnmeasuredError, match="keys of the encoder and of cross-attention"):
        word_effect(*run, "decoder")
    with pytest.raises(IndexError, match="no layer 9"):
        word_effect(*run, layer=9)
    with pytest.raises(IndexError, match="no layer -1"):
        word_effect(*run, layer=-1)
