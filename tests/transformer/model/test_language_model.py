"""A language model: causal, the same with and without a cache, and blind to the other texts of a row."""

from __future__ import annotations

import pytest
import torch
from random_models import random_ids, random_language_model
from torch.nn import functional as F

from transformer.config import RELATIVE, AttentionKind, LanguageModelConfig, config_from
from transformer.storage.description import parameter_count

CLOSE = {"atol": 1e-5, "rtol": 1e-4}


@pytest.fixture(params=RELATIVE)
def model(request):
    return random_language_model(positions=request.param)


def test_a_later_token_changes_nothing_before_it(model):
    ids = random_ids(2, 9)
    other = ids.clone()
    other[:, 6:] = random_ids(2, 3, seed=5)
    torch.testing.assert_close(model(ids)[:, :6], model(other)[:, :6], **CLOSE)
    assert not torch.allclose(model(ids)[:, 6:], model(other)[:, 6:])


def test_the_cache_changes_nothing(model):
    ids, cache = random_ids(2, 9), model.new_cache()
    parts = [model.features(part, cache=cache) for part in (ids[:, :4], ids[:, 4:5], ids[:, 5:])]
    assert cache.length == 9
    torch.testing.assert_close(torch.cat(parts, dim=1), model.features(ids), **CLOSE)


def test_texts_of_one_row_do_not_see_each_other(model):
    first, second = random_ids(1, 4), random_ids(1, 6, seed=1)
    row = torch.cat([first, second], dim=1)
    texts = torch.tensor([[0] * 4 + [1] * 6])
    together = model.features(row, texts)
    torch.testing.assert_close(together[:, :4], model.features(first), **CLOSE)
    torch.testing.assert_close(together[:, 4:], model.features(second), **CLOSE)
    assert not torch.allclose(together[:, 4:], model.features(row)[:, 4:])


def test_the_output_projection_is_the_table_of_embeddings(model):
    features = model.features(random_ids(1, 5))
    torch.testing.assert_close(model.logits(features), F.linear(features, model.embedding.weight))


def test_it_has_masked_self_attention_and_nothing_else():
    config = random_language_model().config
    (site,) = config.sites.values()
    assert (site.kind, site.causal, site.own_keys, site.predicts) == (AttentionKind.DECODER, True, True, True)
    assert set(config.stacks) == {"decoder"}


def test_its_config_is_read_by_its_architecture():
    config = LanguageModelConfig(vocab_size=40, d_model=32, d_ff=64, n_heads=4, n_layers=3)
    assert config_from(config.to_dict()) == config


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_positions_that_count_from_the_start_of_a_row_are_refused(positions):
    with pytest.raises(ValueError, match="positions is"):
        LanguageModelConfig(vocab_size=40, positions=positions)


def test_an_unknown_architecture_is_refused():
    with pytest.raises(ValueError, match="architecture is 'diffusion'"):
        config_from({"architecture": "diffusion", "vocab_size": 40})


def test_the_estimated_number_of_parameters_is_close():
    model = random_language_model(d_model=64, d_ff=256, vocab_size=2000, max_positions=1)
    real = sum(parameter.numel() for parameter in model.parameters())
    assert parameter_count(model.config) == pytest.approx(real, rel=0.02)
