"""Gradients by layer, against blocks written by hand and torch's autograd."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from corpus import number_pairs
from torch import Tensor, nn
from torch.nn import functional as F

from lab.studies.residuals import (
    HEADS,
    INNER,
    SEED,
    VARIANTS,
    WIDTH,
    Gradients,
    Variant,
    at_initialisation,
    of_model,
    sample_batch,
)
from lenses.what_if.untrained import fresh_model
from transformer.model.attention import MultiHeadAttention
from transformer.model.config import TransformerConfig
from transformer.model.packed import join_inputs
from transformer.model.transformer import Transformer
from transformer.runs.translator import Translator
from transformer.text.pairs import SentencePair
from transformer.text.vocabulary import Tokenizer
from transformer.training.batches import Batch

DEPTH = 2


@pytest.fixture(scope="module")
def batch(tokenizer: Tokenizer) -> Batch:
    return sample_batch([SentencePair(*pair) for pair in number_pairs(20)], tokenizer)


@pytest.fixture(scope="module")
def found(batch: Batch, tokenizer: Tokenizer) -> dict[Variant, Gradients]:
    return at_initialisation(batch, tokenizer.vocab_size, DEPTH)


def model_of(vocab_size: int, variant: Variant) -> Transformer:
    layers = {"n_encoder_layers": DEPTH, "n_decoder_layers": DEPTH}
    sizes = {"d_model": WIDTH, "d_ff": INNER, "n_heads": HEADS}
    config = TransformerConfig(vocab_size=vocab_size, norm=variant.norm, **sizes, **layers)
    return fresh_model(config, SEED).double().eval()


class ByHand:
    """The model of a variant, written once more with plain products."""

    def __init__(self, model: Transformer, variant: Variant) -> None:
        self.model, self.variant = model, variant

    def loss(self, batch: Batch) -> Tensor:
        source = (batch.src_ids != 0)[:, None, None, :]
        causal = torch.ones(batch.tgt_ids.shape[1], batch.tgt_ids.shape[1]).tril().bool()
        x = self.embedded(batch.src_ids, self.model.encoder)
        for layer in self.model.encoder.layers:
            x = self.around(x, layer.self_attention_residual.norm, self.attend(layer.self_attention, source))
            x = self.around(x, layer.feed_forward_residual.norm, self.feed(layer.feed_forward))
        memory = self.ended(x, self.model.encoder)
        y = self.embedded(batch.tgt_input_ids, self.model.decoder)
        for layer in self.model.decoder.layers:
            y = self.around(y, layer.self_attention_residual.norm, self.attend(layer.self_attention, causal))
            cross = self.attend(layer.cross_attention, source, memory)
            y = self.around(y, layer.cross_attention_residual.norm, cross)
            y = self.around(y, layer.feed_forward_residual.norm, self.feed(layer.feed_forward))
        logits = self.ended(y, self.model.decoder) @ self.model.embedding.weight.T
        return F.nll_loss(logits.log_softmax(-1)[batch.tgt_ids != 0], batch.tgt_ids[batch.tgt_ids != 0])

    def embedded(self, ids: Tensor, stack: nn.Module) -> Tensor:
        return self.model.embedding.weight[ids] * math.sqrt(WIDTH) + stack.positions.added(ids.shape[1], 0)

    def around(self, x: Tensor, norm: nn.LayerNorm, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        before, after = (norm, None) if self.variant.norm == "pre" else (None, norm)
        update = sublayer(self.normed(x, before))
        return self.normed(x + update if self.variant.residual else update, after)

    def normed(self, x: Tensor, norm: nn.LayerNorm | None) -> Tensor:
        if norm is None or not self.variant.layer_norm:
            return x
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.pow(2).mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight + norm.bias

    def ended(self, x: Tensor, stack: nn.Module) -> Tensor:
        return self.normed(x, stack.final_norm) if self.variant.norm == "pre" else x

    def attend(self, parts: nn.Module, mask: Tensor, memory: Tensor | None = None):
        def apply(x: Tensor) -> Tensor:
            read = x if memory is None else memory
            q, k, v = (
                (part(each)).view(*each.shape[:2], HEADS, -1).transpose(1, 2)
                for part, each in ((parts.q_proj, x), (parts.k_proj, read), (parts.v_proj, read))
            )
            scores = (q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)).masked_fill(~mask, -math.inf)
            return parts.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

        return apply

    def feed(self, parts: nn.Module):
        def apply(x: Tensor) -> Tensor:
            inner = (x @ parts.inner.weight.T + parts.inner.bias).clamp(min=0)
            return inner @ parts.outer.weight.T + parts.outer.bias

        return apply


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_norms_are_those_of_blocks_written_by_hand(
    variant: Variant, found: dict[Variant, Gradients], batch: Batch, tokenizer: Tokenizer
):
    model = model_of(tokenizer.vocab_size, variant)
    loss = ByHand(model, variant).loss(batch)
    loss.backward()
    assert found[variant].loss == pytest.approx(float(loss.detach()), rel=1e-5)
    for side, norms in (("encoder", found[variant].encoder), ("decoder", found[variant].decoder)):
        for layer, norm in zip(model.stack(side).layers, norms, strict=True):
            weights = [w.grad for name, w in layer.named_parameters() if "norm" not in name]
            total = sum(float(each.pow(2).sum()) for each in weights if each is not None)
            assert norm == pytest.approx(math.sqrt(total), rel=1e-5), (side, norms)


def test_without_a_switch_it_is_the_model_s_own_computation(batch: Batch, tokenizer: Tokenizer, found):
    for variant in VARIANTS[:2]:
        model = model_of(tokenizer.vocab_size, variant)
        counted = batch.tgt_ids != 0
        logits = model(batch.src_ids, batch.tgt_input_ids)[counted]
        assert found[variant].loss == pytest.approx(
            float(F.cross_entropy(logits, batch.tgt_ids[counted]).detach())
        )


def test_a_shared_model_is_not_changed(translator: Translator, batch: Batch):
    model = translator.model
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    norms = of_model(model, batch)
    assert min(*norms.encoder, *norms.decoder) > 0
    assert not any(weight.requires_grad or weight.grad is not None for weight in model.parameters())
    assert not model.training
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_a_model_laid_out_for_speed_has_the_same_gradients(translator: Translator, batch: Batch):
    laid_out = copy.deepcopy(translator.model)
    for each in laid_out.modules():
        if isinstance(each, MultiHeadAttention):
            each.joined = None
    before = of_model(laid_out, batch)
    join_inputs(laid_out)
    after = of_model(laid_out, batch)
    norms = before.encoder + before.decoder
    assert after.encoder + after.decoder == pytest.approx(norms, rel=1e-4)


def test_equal_tokens_have_a_cosine_of_one(batch: Batch, tokenizer: Tokenizer, found):
    same = replace(batch, src_ids=torch.full_like(batch.src_ids, 7))
    model = Transformer(
        TransformerConfig(vocab_size=tokenizer.vocab_size, d_model=8, n_heads=2, d_ff=8, positions="none")
    )
    assert of_model(model, same).alike == pytest.approx(1)
    assert all(-1 < each.alike < 1 for each in found.values())


def test_the_spread_of_a_layer_without_gradient_is_infinite():
    assert Gradients((1.0, 0.0), (2.0,), 1.0, 0.5).spread == math.inf
    assert Gradients((1.0, 4.0), (2.0,), 1.0, 0.5).spread == 4
