"""Whole source words taken away, against runs in which their keys or values are changed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from random_models import random_model

from explorer.lenses.measures.effect import Effects
from explorer.lenses.measures.stream import UnmeasuredError
from explorer.lenses.measures.words import source_words, word_effect
from transformer import Capture, interventions
from transformer.model.encodings.positions import REGISTRY
from transformer.model.watching.observer import Attended, AttentionInputs, Bystander
from transformer.runs.translator import Translator

MODELS = [("pre", name) for name in REGISTRY] + [("post", "sinusoidal")]


@pytest.fixture(scope="module", params=MODELS, ids=lambda each: " ".join(each))
def run(request, translator):
    norm, positions = request.param
    size = translator.config.vocab_size
    network = random_model(vocab_size=size, norm=norm, positions=positions, scale=0.6)
    model = Translator(network.eval(), translator.tokenizer, name="random")
    return model, model.force("one zebra three", "two one four", capture=Capture(residual=True))


class Instead(Bystander):
    """Other values at some keys of a kind, in one layer or in all."""

    def __init__(self, kind: str, keys: list[int], way: str, layer: int | None) -> None:
        self.kind, self.keys, self.way, self.layer = kind, keys, way, layer

    def attention(self, asked: AttentionInputs) -> Attended:
        if asked.kind != self.kind or self.layer not in (None, asked.layer):
            return super().attention(asked)
        value = asked.value.clone()
        instead = asked.value.mean(2, keepdim=True) if self.way == "mean" else torch.zeros(())
        value[:, :, self.keys] = instead.to(value)
        return super().attention(asked._replace(value=value))


def by_hand(run, observer: Bystander) -> np.ndarray:
    model, translation = run
    ids = torch.tensor([[*model.ids(translation.source_text), model.config.eos_id]])
    read = torch.tensor([[model.config.bos_id, *translation.target_ids[:-1]]])
    with torch.inference_mode():
        memory = model.model.encode(ids, observer=observer)
        features = model.model.decode(read, memory, observer=observer)[0]
        table = model.model.logits(features).float().log_softmax(-1)
    written = torch.tensor(translation.target_ids)
    return table.gather(-1, written[:, None])[:, 0].numpy() - np.array(translation.log_probs)


def test_words_hold_all_their_pieces_and_the_end_is_one_of_them(run):
    translation = run[1]
    words = source_words(translation)
    assert [at for word in words for at in word.indices] == list(range(len(translation.source_tokens)))
    assert words[-1].text == "</s>"
    assert any(len(word.indices) > 1 for word in words)


@pytest.mark.parametrize("kind", ["encoder", "cross"])
@pytest.mark.parametrize("layer", [None, 1])
def test_a_word_without_its_values_is_a_run_with_other_values(run, kind: str, layer: int | None):
    for way in ("zeroed", "mean"):
        found = word_effect(*run, kind, way, layer)
        for at, word in enumerate(source_words(run[1])):
            expected = by_hand(run, Instead(kind, list(word.indices), way, layer))
            np.testing.assert_allclose(found[:, at], expected, atol=3e-4)


def test_a_hidden_word_is_the_mask_s_intervention(run):
    model, translation = run
    for kind in ("encoder", "cross"):
        for layer in (None, 0):
            found = word_effect(model, translation, kind, "hidden", layer)
            for at, word in enumerate(source_words(translation)):
                gone = interventions.mask(kind, forbid=[(None, key) for key in word.indices], layer=layer)
                changed = model.force(translation.source_text, translation.text, interventions=[gone])
                expected = np.subtract(changed.log_probs, translation.log_probs)
                np.testing.assert_allclose(found[:, at], expected, atol=3e-4)


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
