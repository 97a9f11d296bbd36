"""Shares of source and prefix against NumPy, block by block, and in cases whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from random_models import random_translator

from explorer.lenses.measures.alti import alti
from explorer.lenses.measures.comparisons import rollout, value_zeroing
from transformer import Capture
from transformer.model.encodings.positions import REGISTRY
from transformer.model.sites import AttentionKind
from transformer.runs.retrace import retrace

TEXT, TARGET = "one two three nine", "two one four"


def forced(model):
    return model.force(TEXT, TARGET, capture=Capture(residual=True))


def array(tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def shares(parts: np.ndarray, whole: np.ndarray) -> np.ndarray:
    near = np.maximum(0, np.abs(whole).sum(-1)[:, None] - np.abs(whole[:, None] - parts).sum(-1))
    return near / near.sum(-1, keepdims=True)


def normed(norm, vectors: np.ndarray, entered: np.ndarray) -> np.ndarray:
    """A LayerNorm without β, with the σ of what entered."""
    centred = vectors - vectors.mean(-1, keepdims=True)
    return array(norm.weight) * centred / np.sqrt(entered.var(-1) + norm.eps)[..., None]


def block(model, run, side: str, kind: str, layer: int) -> np.ndarray:
    """(queries, inputs) shares, from the weights of the network and the streams alone."""
    sites = model.config.sites[AttentionKind(kind)]
    attention = model.model.attention(kind, layer)
    sublayer = next(
        each for each in model.config.stacks[side].passed() if each.layer == layer and each.name == sites.name
    )
    record, residual = run.stream(sublayer), model.model.residual(sublayer)
    stream, pre = array(record.stream), model.config.norm == "pre"
    if kind == "cross":
        last = run.stream(model.config.stacks["encoder"].ends()[-1])
        keys = array(last.output)
        final = model.model.stack("encoder").final_norm
        keys = keys if not pre else normed(final, keys, keys) + array(final.bias)
    else:
        keys = normed(residual.norm, stream, stream) if pre else stream
    weights = run.weights  # (queries, keys) of a head
    values = (keys @ array(attention.v_proj.weight).T).reshape(len(keys), attention.n_heads, -1)
    out = array(attention.out_proj.weight).T.reshape(attention.n_heads, -1, stream.shape[1])
    parts = sum(
        weights(kind, layer, head)[:, :, None] * (values[:, head] @ out[head])[None]
        for head in range(attention.n_heads)
    )
    own = np.zeros((len(stream), len(stream), stream.shape[1]))
    own[np.arange(len(stream)), np.arange(len(stream))] = stream
    parts = np.concatenate([stream[:, None], parts], 1) if kind == "cross" else parts + own
    if not pre:
        entered = stream + array(record.update)
        parts = normed(residual.norm, parts, np.broadcast_to(entered[:, None], parts.shape))
    return shares(parts, array(record.output))


@pytest.mark.parametrize(
    ("norm", "positions"), [*(("pre", name) for name in REGISTRY), ("post", "sinusoidal"), ("post", "t5")]
)
def test_shares_are_those_of_numpy_and_sum_to_one(translator, norm, positions):
    model = random_translator(translator.tokenizer, norm, positions)
    run = forced(model)
    found = alti(model.model, run)
    encoder = np.eye(len(run.source_tokens))
    for layer in range(model.config.n_encoder_layers):
        encoder = block(model, run, "encoder", "encoder", layer) @ encoder
    steps = len(run.target_tokens)
    source, prefix = np.zeros((steps, len(encoder))), np.eye(steps)
    for layer in range(model.config.n_decoder_layers):
        own = block(model, run, "decoder", "decoder", layer)
        source, prefix = own @ source, own @ prefix
        read = block(model, run, "decoder", "cross", layer)
        source, prefix = read[:, :1] * source + read[:, 1:] @ encoder, read[:, :1] * prefix
    np.testing.assert_allclose(found.source, source, atol=1e-5)
    np.testing.assert_allclose(found.prefix, prefix, atol=1e-5)
    np.testing.assert_allclose(found.source.sum(1) + found.prefix.sum(1), 1, atol=1e-5)
    assert np.triu(found.prefix, 1).max() == 0
    assert found.audit.passed
    assert found.audit.checks[0].value < 1e-5


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


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_zeroed_values_turn_a_layer_s_output_as_a_run_without_them(translator, norm, kind):
    model = random_translator(translator.tokenizer, norm)
    run, layer, key = forced(model), 1, 0
    found = value_zeroing(model.model, run, kind, layer)
    side = model.config.sites[AttentionKind(kind)].query_side
    sublayer = [each for each in model.config.stacks[side].passed() if each.layer == layer][-1]
    whole = array(run.stream(sublayer).output)
    attention = model.model.attention(kind, layer)

    def without(module, args, output):
        return torch.cat([torch.zeros_like(output[:, :1]), output[:, 1:]], 1)

    handle = attention.v_proj.register_forward_hook(without)
    try:
        changed = array(retrace(model, run).stream(sublayer).output)
    finally:
        handle.remove()
    cosine = (whole * changed).sum(-1) / np.linalg.norm(whole, axis=-1) / np.linalg.norm(changed, axis=-1)
    np.testing.assert_allclose(found[:, key], 1 - cosine, atol=1e-5)


def test_rollout_multiplies_half_and_half_block_by_block(translator):
    run = forced(random_translator(translator.tokenizer))
    source, prefix = rollout(run)

    def block(kind: str, layer: int) -> np.ndarray:
        heads = range(run.config.n_heads)
        return np.mean([run.weights(kind, layer, head) for head in heads], axis=0)

    encoder = np.eye(len(run.source_tokens))
    for layer in range(run.config.n_encoder_layers):
        encoder = (np.eye(len(encoder)) + block("encoder", layer)) / 2 @ encoder
    steps = len(run.decoder_input_tokens)
    joint = np.hstack([np.zeros((steps, len(encoder))), np.eye(steps)])
    for layer in range(run.config.n_decoder_layers):
        joint = (np.eye(steps) + block("decoder", layer)) / 2 @ joint
        read = np.hstack([block("cross", layer) @ encoder, np.zeros((steps, steps))])
        joint = (joint + read) / 2
    np.testing.assert_allclose(source, joint[:, : len(encoder)], atol=1e-5)
    np.testing.assert_allclose(prefix, joint[:, len(encoder) :], atol=1e-5)
