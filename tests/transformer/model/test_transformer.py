from __future__ import annotations

import copy

import pytest
import torch
from paper_models import paper_base, paper_big
from random_models import random_config, random_ids, random_model
from torch import nn
from torch_reference import as_nn_transformer

from transformer.model import Transformer, count_parameters
from transformer.packed import convert

NORMS = pytest.mark.parametrize("norm", ["pre", "post"])


@pytest.mark.parametrize(("config", "millions"), [(paper_base(), 63.1), (paper_big(), 214.2)])
def test_the_paper_s_models_have_the_right_number_of_parameters(config, millions):
    with torch.device("meta"):
        model = Transformer(config)
    assert round(count_parameters(model) / 1e6, 1) == millions


def test_the_parameter_count_is_the_sum_of_its_parts():
    config = random_config(norm="pre")
    d, f, v = config.d_model, config.d_ff, config.vocab_size
    attention, feed_forward, norm = 4 * (d * d + d), 2 * d * f + d + f, 2 * d
    encoder = config.n_encoder_layers * (attention + feed_forward + 2 * norm)
    decoder = config.n_decoder_layers * (2 * attention + feed_forward + 3 * norm)
    assert count_parameters(Transformer(config)) == v * d + encoder + decoder + 2 * norm


def test_an_untied_model_has_one_more_table():
    tied, untied = (
        count_parameters(Transformer(random_config(tied_embeddings=tied))) for tied in (True, False)
    )
    assert untied - tied == 40 * 32


# torch announces, once per process, that its nested-tensor fast path is off for pre-norm.
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@NORMS
@torch.no_grad()
def test_the_stacks_equal_nn_transformer(norm):
    model = random_model(norm=norm)
    reference = as_nn_transformer(model)
    src, tgt = random_ids(2, 7), random_ids(2, 5, seed=1)
    src[1, 4:] = 0
    embedded = [
        model.embedding(ids) * model.config.embedding_scale + model.encoder.positions.added(ids.shape[1])
        for ids in (src, tgt)
    ]
    expected = reference(
        *embedded,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(5),
        src_key_padding_mask=src == 0,
        memory_key_padding_mask=src == 0,
        tgt_is_causal=True,
    )
    torch.testing.assert_close(model.features(src, tgt), expected, atol=1e-4, rtol=1e-4)


@NORMS
def test_a_later_target_token_changes_no_earlier_logit(norm):
    model, src, tgt = random_model(norm=norm), random_ids(1, 6), random_ids(1, 8, seed=1)
    before = model(src, tgt)
    for changed in range(1, 8):
        other = tgt.clone()
        other[0, changed] = 4 + (other[0, changed] - 3) % 36
        after = model(src, other)
        torch.testing.assert_close(after[:, :changed], before[:, :changed], atol=1e-6, rtol=0)
        assert (after[:, changed] - before[:, changed]).abs().max() > 1e-3


@NORMS
def test_every_source_token_changes_every_logit_row(norm):
    model, src, tgt = random_model(norm=norm), random_ids(1, 6), random_ids(1, 4, seed=1)
    before = model(src, tgt)
    for changed in range(6):
        other = src.clone()
        other[0, changed] = 4 + (other[0, changed] - 3) % 36
        assert ((model(other, tgt) - before).abs().amax(-1) > 1e-5).all()


@NORMS
def test_padding_changes_nothing(norm):
    model, src, tgt = random_model(norm=norm), random_ids(1, 6), random_ids(1, 4, seed=1)
    padded = torch.cat([src, torch.zeros(1, 5, dtype=torch.long)], 1), torch.nn.functional.pad(tgt, (0, 3))
    torch.testing.assert_close(model(*padded)[:, :4], model(src, tgt), atol=1e-5, rtol=0)


def test_a_batch_gives_each_sentence_its_own_logits():
    model = random_model()
    short, long, tgt = random_ids(1, 3), random_ids(1, 9, seed=2), random_ids(2, 4, seed=1)
    batch = torch.cat([torch.nn.functional.pad(short, (0, 6)), long])
    together = model(batch, tgt)
    alone = torch.cat([model(short, tgt[:1]), model(long, tgt[1:])])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


def test_dropout_acts_in_training_only():
    model, src, tgt = random_model(dropout=0.5), random_ids(1, 6), random_ids(1, 4)
    assert torch.equal(model(src, tgt), model(src, tgt))
    model.train()
    assert not torch.equal(model(src, tgt), model(src, tgt))


def test_tied_logits_are_products_with_the_embeddings():
    model = random_model()
    features = torch.randn(2, 3, 32)
    assert torch.equal(model.logits(features), features @ model.embedding.weight.T)


def test_a_converted_model_has_the_same_numbers_and_other_places_in_memory():
    model, src_ids, tgt_ids = random_model(), random_ids(2, 5), random_ids(2, 4, seed=1)
    expected, logits = {name: x.clone() for name, x in model.state_dict().items()}, model(src_ids, tgt_ids)
    found = convert(convert(model, "cpu"), "cpu")
    assert all(torch.equal(tensor, expected[name]) for name, tensor in found.state_dict().items())
    for parameter in found.encoder.parameters():
        wide = parameter.dim() == 2 and parameter.shape[0] >= parameter.shape[1]
        assert (parameter.t() if wide else parameter).is_contiguous()
    torch.testing.assert_close(found(src_ids, tgt_ids), logits, atol=1e-5, rtol=0)


def test_the_three_maps_of_a_decoder_s_self_attention_are_one_product_that_follows_each_of_them():
    model = convert(random_model(), "cpu")
    own = model.decoder.layers[0].self_attention
    assert own.joined is not None
    assert model.decoder.layers[0].cross_attention.joined is None
    x = torch.randn(2, 3, own.q_proj.in_features)
    own.k_proj.weight.data[0] = 7.0
    own.v_proj.bias.data[1] = 7.0
    three = torch.cat([linear(x) for linear in (own.q_proj, own.k_proj, own.v_proj)], dim=-1)
    torch.testing.assert_close(own.joined(x), three, atol=1e-5, rtol=0)
    assert copy.deepcopy(own).joined is None


def test_a_converted_model_that_is_moved_or_rounded_computes_with_its_own_parameters():
    src, tgt = random_ids(2, 5), random_ids(2, 4, seed=1)
    model = convert(random_model(), "cpu")
    expected = copy.deepcopy(model).double()(src, tgt)
    assert model.double()(src, tgt).dtype == torch.float64
    torch.testing.assert_close(model(src, tgt), expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", ["q_proj", "k_proj", "v_proj"])
def test_a_map_that_was_put_in_later_is_used(name):
    """Silently the old one was, for keys and values."""
    model = convert(random_model(), "cpu").requires_grad_(False)
    own, x = model.decoder.layers[0].self_attention, torch.randn(2, 3, random_model().config.d_model)
    before = own(x)
    fresh = copy.deepcopy(own)
    with torch.no_grad():
        for attention in (own, fresh):
            parameter = getattr(attention, name).weight
            getattr(attention, name).weight = torch.nn.Parameter(parameter.flip(0), requires_grad=False)
    assert not torch.allclose(own(x), before)
    torch.testing.assert_close(own(x), fresh(x))
    getattr(own, name).weight.requires_grad_(True)
    own(x).square().sum().backward()
    assert getattr(own, name).weight.grad.any()


def test_gradients_reach_every_parameter():
    model = random_model().requires_grad_(True)
    model(random_ids(2, 6), random_ids(2, 4, seed=1)).square().mean().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


def test_a_sequence_longer_than_the_positions_is_refused():
    with pytest.raises(ValueError, match="8 positions"):
        random_model(max_positions=8)(random_ids(1, 9), random_ids(1, 2))


def test_a_target_with_its_own_table_and_bias_reads_and_writes_its_own_pieces():
    model = random_model(target_vocab_size=23, shared_embeddings=False, output_bias=True)
    src_ids, tgt_ids = random_ids(2, 5), random_ids(2, 4, vocab_size=23)
    logits = model(src_ids, tgt_ids)
    assert logits.shape == (2, 4, 23)
    torch.testing.assert_close(
        logits, model.features(src_ids, tgt_ids) @ model.target_embedding.weight.T + model.output_bias
    )


def test_embeddings_are_scaled_only_where_the_config_says_so():
    model, plain = random_model(), random_model(scaled_embeddings=False)
    plain.load_state_dict(model.state_dict())
    plain.embedding.weight *= model.config.embedding_scale
    ids = random_ids(1, 6)
    torch.testing.assert_close(plain.encode(ids), model.encode(ids))
