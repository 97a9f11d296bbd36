from __future__ import annotations

import pytest
import torch
from random_models import random_config
from torch import nn
from torch.nn import functional as F
from torch_reference import copy_layer

from transformer.attention import AttentionMask
from transformer.config import Sublayer
from transformer.encodings import make_positions
from transformer.layers import FeedForward, Layer

BATCH, SOURCE, TARGET = 2, 7, 5
PADDING = torch.tensor([[True] * SOURCE, [True] * 4 + [False] * 3])


def randomised(module):
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.3, generator=generator)
    return module.eval()


def reference_layer(kind: type[nn.Module], config) -> nn.Module:
    return kind(
        config.d_model,
        config.n_heads,
        config.d_ff,
        config.dropout,
        config.activation,
        batch_first=True,
        norm_first=config.norm == "pre",
    ).eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@torch.no_grad()
def test_an_encoder_layer_equals_torch_s(norm, activation):
    config = random_config(norm=norm, activation=activation)
    own, reference = (
        randomised(Layer(config, "encoder", 0)),
        reference_layer(nn.TransformerEncoderLayer, config),
    )
    copy_layer(own, reference)
    x = torch.randn(BATCH, SOURCE, config.d_model, generator=torch.Generator().manual_seed(5))
    found = own(x, AttentionMask(PADDING), make_positions(config))
    expected = reference(x, src_key_padding_mask=~PADDING)
    torch.testing.assert_close(found[PADDING], expected[PADDING], atol=5e-5, rtol=1e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.no_grad()
def test_a_decoder_layer_equals_torch_s(norm):
    config = random_config(norm=norm)
    own, reference = (
        randomised(Layer(config, "decoder", 0)),
        reference_layer(nn.TransformerDecoderLayer, config),
    )
    copy_layer(own, reference)
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(BATCH, TARGET, config.d_model, generator=generator)
    memory = torch.randn(BATCH, SOURCE, config.d_model, generator=generator)
    mask, memory_mask = AttentionMask(causal=True), AttentionMask(PADDING)
    found = own(x, mask, make_positions(config), None, memory, memory_mask)
    future = nn.Transformer.generate_square_subsequent_mask(TARGET)
    expected = reference(x, memory, tgt_mask=future, tgt_is_causal=True, memory_key_padding_mask=~PADDING)
    torch.testing.assert_close(found, expected, atol=5e-5, rtol=1e-5)


@torch.no_grad()
def test_the_feed_forward_network_is_equation_2():
    layer = randomised(FeedForward(random_config(), Sublayer("encoder", 0, "feed_forward")))
    x = torch.randn(2, 3, 32, generator=torch.Generator().manual_seed(7))
    inner = F.linear(x, layer.inner.weight, layer.inner.bias).clamp(min=0)
    torch.testing.assert_close(layer(x), F.linear(inner, layer.outer.weight, layer.outer.bias))
