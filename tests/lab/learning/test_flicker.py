"""Dropout, seen: runs in training mode, and the model afterwards is what it was."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from lab.learning.flicker import RUNS, SHOWN, Flicker, flicker
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.trace.view import Window

TEXT, TARGET = "one two three", "eins drei zwei"


@pytest.fixture(scope="module")
def forced(translator: Translator) -> Translation:
    return translator.force(TEXT, TARGET)


def whole(forced: Translation, kind: str) -> Window:
    rows = forced.source_tokens if kind == "encoder" else forced.target_tokens
    keys = forced.target_tokens if kind == "decoder" else forced.source_tokens
    return Window(0, len(rows), 0, len(keys))


def found_in(translator: Translator, forced: Translation, kind: str) -> Flicker:
    window = whole(forced, kind)
    return flicker(translator, TEXT, forced.target_ids, AttentionKind(kind), window)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_run_is_a_forced_pass_with_dropout(translator: Translator, forced: Translation, kind: str):
    found = found_in(translator, forced, kind)
    assert (found.rate, found.runs) == (translator.config.dropout, RUNS)
    assert len(found.shown) == len(SHOWN)
    np.testing.assert_allclose(found.shown.sum(-1), 1, atol=1e-5)
    assert all(np.abs(one - other).max() > 1e-3 for one, other in pairwise(found.shown))
    if kind == "decoder":
        assert not np.triu(found.shown, 1).any()


def test_the_weights_are_those_of_a_plain_pass_in_training_mode(translator: Translator, forced: Translation):
    found = found_in(translator, forced, "encoder")
    model, layer = copy.deepcopy(translator.model).train(), 1
    kept: dict[str, torch.Tensor] = {}
    attention = model.encoder.layers[layer].self_attention
    for name in ("q_proj", "k_proj"):
        getattr(attention, name).register_forward_hook(lambda *call, name=name: kept.update({name: call[2]}))
    source = torch.tensor([[*translator.ids(TEXT), translator.config.eos_id]])
    target = torch.tensor([[translator.config.bos_id, *forced.target_ids[:-1]]])
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(SHOWN[0])
        model.features(source, target)
    heads, width = translator.config.n_heads, translator.config.d_head
    q, k = (kept[name][0].view(-1, heads, width).transpose(0, 1) for name in ("q_proj", "k_proj"))
    expected = (q @ k.transpose(1, 2) / math.sqrt(width)).softmax(-1)
    np.testing.assert_allclose(found.shown[0, layer], expected.numpy(), atol=1e-5)


def test_mean_and_spread_are_over_all_runs_and_repeat_with_their_seeds(
    translator: Translator, forced: Translation, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("lab.learning.flicker.RUNS", 3)
    found, again = (found_in(translator, forced, "cross") for _ in range(2))
    np.testing.assert_allclose(found.mean, found.shown.mean(0), atol=1e-6)
    np.testing.assert_allclose(found.spread, found.shown.std(0), atol=1e-6)
    assert np.array_equal(found.shown, again.shown)


def test_nothing_else_of_the_model_or_the_random_stream_changes(translator: Translator, forced: Translation):
    model, random = translator.model, torch.get_rng_state()
    before = translator.force(TEXT, TARGET)
    found_in(translator, forced, "cross")
    after = translator.force(TEXT, TARGET)
    assert torch.equal(torch.get_rng_state(), random)
    assert not any(module.training for module in model.modules())
    assert before.log_probs == after.log_probs
    for layer in range(translator.config.n_decoder_layers):
        weights = [each.head("cross", layer, 0).weights for each in (before, after)]
        assert np.array_equal(*weights)
    assert after.attention is not None
    assert after.attention.audit().passed


def test_a_window_is_a_part_of_the_whole_map(translator: Translator, forced: Translation):
    part = flicker(translator, TEXT, forced.target_ids, AttentionKind.CROSS, Window(1, 3, 0, 2))
    full = found_in(translator, forced, "cross")
    assert np.array_equal(part.spread, full.spread[..., 1:3, 0:2])
    assert part.nbytes < full.nbytes


def test_without_dropout_every_run_is_the_model_s_own(translator: Translator, forced: Translation):
    still = copy.deepcopy(translator.model)
    still.config = replace(translator.config, dropout=0.0)
    for module in still.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    found = found_in(Translator(still, translator.tokenizer), forced, "cross")
    assert found.spread.max() < 1e-6
    np.testing.assert_allclose(found.shown[0, 1, 2], forced.head("cross", 1, 2).weights, atol=1e-5)
