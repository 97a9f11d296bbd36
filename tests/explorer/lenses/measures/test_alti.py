"""Shares of source and prefix in cases whose answer is known."""

from __future__ import annotations

import numpy as np
import torch
from random_models import random_translator

from explorer.lenses.measures.alti import alti
from explorer.lenses.measures.comparisons import rollout
from transformer import Capture
from transformer.config import AttentionKind

TEXT, TARGET = "one two three nine", "two one four"


def forced(model):
    return model.force(TEXT, TARGET, capture=Capture(residual=True))


def test_a_decoder_that_reads_nothing_of_the_source_gives_it_no_share(translator):
    model = random_translator(translator.tokenizer)
    with torch.no_grad():
        for layer in range(model.config.n_decoder_layers):
            model.model.attention("cross", layer).v_proj.weight.zero_()
    found = alti(model.model, forced(model))
    assert found.source.max() == 0


def test_heads_that_write_nothing_leave_every_token_to_itself(translator):
    model = random_translator(translator.tokenizer)
    with torch.no_grad():
        for kind in ("encoder", "decoder"):
            for layer in range(model.config.sites[AttentionKind(kind)].n_layers):
                model.model.attention(kind, layer).v_proj.weight.zero_()
    found = alti(model.model, forced(model))
    assert np.abs(found.prefix - np.diag(np.diag(found.prefix))).max() == 0


def test_rows_in_chunks_are_those_at_once(translator, monkeypatch):
    model = random_translator(translator.tokenizer)
    whole = alti(model.model, forced(model))
    monkeypatch.setattr("explorer.lenses.measures.alti._AT_ONCE", 1)
    np.testing.assert_array_equal(alti(model.model, forced(model)).source, whole.source)


def test_rollout_gives_every_step_the_same_share_whatever_the_model(translator):
    model = random_translator(translator.tokenizer)
    source, prefix = rollout(forced(model))
    expected = 1 - 2.0**-model.config.n_decoder_layers
    np.testing.assert_allclose(source.sum(1), expected, atol=1e-6)
    np.testing.assert_allclose(prefix.sum(1), 1 - expected, atol=1e-6)
