from __future__ import annotations

import pytest
from random_models import random_config, random_ids, random_model

from transformer import AttentionKind, Capture, Hooks
from transformer.config import Sublayer
from transformer.trace import trace_of

KINDS = list(AttentionKind)
DEPTHS = [(1, 1), (2, 5), (4, 1)]
SOURCE, TARGET = 7, 4


@pytest.fixture(params=DEPTHS, ids=str)
def model(request):
    n_encoder_layers, n_decoder_layers = request.param
    return random_model(n_encoder_layers=n_encoder_layers, n_decoder_layers=n_decoder_layers)


@pytest.fixture
def trace(model):
    hooks = Hooks(Capture(residual=True).parts)
    model(random_ids(1, SOURCE), random_ids(1, TARGET), hooks=hooks)
    return trace_of(hooks, model.config, lambda *_: None)


@pytest.mark.parametrize(("encoder", "decoder"), DEPTHS)
def test_every_kind_is_as_deep_as_the_stack_it_sits_in(encoder, decoder):
    config = random_config(n_encoder_layers=encoder, n_decoder_layers=decoder)
    depths = {kind.value: site.n_layers for kind, site in config.sites.items()}
    assert depths == {"encoder": encoder, "decoder": decoder, "cross": decoder}
    assert all(site.n_layers == config.stacks[site.query_side].n_layers for site in config.sites.values())


def test_only_the_decoder_looks_at_no_later_key_and_only_cross_attention_at_another_sequence():
    sites = random_config().sites.values()
    assert [site.kind for site in sites if site.causal] == [AttentionKind.DECODER]
    assert [site.kind for site in sites if not site.own_keys] == [AttentionKind.CROSS]
    assert [site.kind for site in sites if not site.predicts] == [AttentionKind.ENCODER]


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_names_the_modules_that_the_model_has(model, kind):
    site = model.config.sites[kind]
    for layer in range(site.n_layers):
        attention, sublayer = model.attention(kind, layer), site.sublayer(layer)
        assert (attention.kind, attention.layer) == (kind, layer)
        assert model.residual(sublayer).name == sublayer.path
    assert len(model.stack(site.query_side).layers) == site.n_layers


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_says_what_a_running_model_does(model, trace, kind):
    site, lengths = model.config.sites[kind], {"encoder": SOURCE, "decoder": TARGET}
    assert len(trace.layers[kind]) == site.n_layers
    for record in trace.layers[kind]:
        assert record.shape[1:] == (lengths[site.query_side], lengths[site.key_side])
        assert record.causal == site.causal


def test_the_stream_passes_the_sub_layers_in_the_order_of_the_table(model, trace):
    passed = [each for stack in model.config.stacks.values() for each in stack.passed()]
    assert list(trace.residuals) == passed


def test_a_stack_tells_what_follows_a_sub_layer_within_a_layer_across_layers_and_behind_the_last():
    stack = random_config(n_decoder_layers=2).stacks["decoder"]
    first, second = (Sublayer("decoder", layer, "feed_forward") for layer in (0, 1))
    assert stack.after(Sublayer("decoder", 0, "self_attention")) == Sublayer("decoder", 0, "cross_attention")
    assert stack.after(first) == Sublayer("decoder", 1, "self_attention")
    assert stack.after(second) is None
    assert stack.ends() == (first, second)
