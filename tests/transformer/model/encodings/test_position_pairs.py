"""Whatever must agree for one model must agree for each positional encoding."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import random_ids, random_model

from transformer import Translator
from transformer.attention import Cache, padding_mask
from transformer.audit import audit_layer
from transformer.batches import translate_all
from transformer.beam import beam_search
from transformer.config import ENCODINGS, AttentionKind
from transformer.decoding import DecodingState, decode, finish
from transformer.encodings import REGISTRY
from transformer.hooks import Capture, Hooks
from transformer.trace import trace_of
from transformer.translator import retrace
from transformer.view import Window

TEXT = "one two three four five"
BIASED = tuple(name for name, each in ENCODINGS.items() if each.acts == "scores")
SELF_ATTENTION = ("encoder", "decoder")


@pytest.fixture(scope="module", params=REGISTRY)
def translator(request, tokenizer):
    model = random_model(
        vocab_size=tokenizer.vocab_size, norm="pre", tied_embeddings=False, positions=request.param
    )
    return Translator(model, tokenizer, name=request.param)


@pytest.fixture(scope="module")
def translation(translator):
    return translator.translate(TEXT, max_length=8)


@torch.inference_mode()
def test_cached_decoding_equals_one_pass(translator):
    model, ids = translator.model, random_ids(2, 40)
    memory, cache = model.encode(random_ids(2, 6)), Cache(model.config.n_decoder_layers)
    parts = [model.decode(part, memory, cache=cache) for part in ids.split([1] * 9 + [22, 9], 1)]
    torch.testing.assert_close(torch.cat(parts, 1), model.decode(ids, memory), atol=1e-5, rtol=0)


def test_capture_changes_no_logit(translator, translation):
    plain = translator.translate(TEXT, max_length=8, capture=False)
    assert plain.log_probs == translation.log_probs


def test_steps_recorded_while_decoding_equal_the_replay(translator, translation):
    assert translator.translate(TEXT, beam_size=3, max_length=8).attention.audit().passed
    replayed = retrace(translator, translation)
    for kind in AttentionKind:
        step_by_step, in_one_pass = (run.attention.weights(kind, 1) for run in (translation, replayed))
        np.testing.assert_allclose(step_by_step, in_one_pass, atol=1e-5)


def test_the_audit_passes_and_turns_red_without_the_rule(translator, translation):
    assert translation.attention.audit().passed
    for kind in SELF_ATTENTION if translator.name in BIASED else ():
        dropped = replace(translation.attention.layer(kind, 1), bias=None)
        assert "outputs" in {check.name for check in audit_layer(dropped) if not check.passed}


@torch.inference_mode()
def test_a_beam_of_one_is_greedy(translator):
    src = random_ids(3, 6)
    (greedy, *_), (beam, *_) = (
        finish(decoding(DecodingState(translator.model, src)))
        for decoding in (lambda r: decode(r, 8), lambda r: beam_search(r, 8, 1))
    )
    assert beam.token_ids == greedy.token_ids


def test_a_padded_batch_translates_each_text_as_alone(translator):
    texts = ["one two", TEXT, "three"]
    alone = [translate_all(translator, [text], max_length=8)[0] for text in texts]
    assert translate_all(translator, texts, max_length=8) == alone
    beams = [translate_all(translator, [text], beam_size=3, max_length=8)[0] for text in texts]
    assert translate_all(translator, texts, beam_size=3, max_length=8) == beams


@torch.inference_mode()
def test_padding_changes_nothing(translator):
    ids = random_ids(1, 5)
    padded = torch.cat([ids, torch.zeros(1, 3, dtype=torch.long)], 1)
    memory = translator.model.encode(padded, padding_mask(padded, 0))[:, :5]
    torch.testing.assert_close(memory, translator.model.encode(ids), atol=1e-5, rtol=0)


def test_a_hook_that_changes_nothing_runs_the_explicit_path_to_the_same_output(translator, translation):
    scores = [name for name in translator.model.hook_names() if name.endswith(".scores")]
    leave = dict.fromkeys(scores, lambda values, first: values.clone())
    hooked = translator.translate(TEXT, max_length=8, hooks=leave)
    assert hooked.target_tokens == translation.target_tokens
    for kind in AttentionKind:
        explicit, fused = hooked.attention.layer(kind, 1), translation.attention.layer(kind, 1)
        torch.testing.assert_close(explicit.output, fused.output, atol=1e-5, rtol=1e-5)


def test_a_hook_on_scores_receives_them_with_the_bias(translator, translation):
    seen = {}

    def look(layer):
        return lambda values, first: seen.setdefault(("encoder", layer), values)

    hooks = {f"encoder.{layer}.self_attention.scores": look(layer) for layer in range(2)}
    translator.force(TEXT, translation.text, hooks=hooks)
    for layer in range(2):
        recorded = translation.attention.scores("encoder", layer)
        np.testing.assert_allclose(seen["encoder", layer][0].numpy(), recorded, atol=1e-4)


def test_scores_are_products_plus_the_bias_that_the_trace_gives_alone(translator, translation):
    trace = translation.attention
    for kind in AttentionKind:
        record = trace.layer(kind, 1)
        products = (record.query @ record.key.mT).numpy() / 8**0.5
        bias = trace.map(kind, 1).bias
        assert (bias is not None) == (translator.name in BIASED and kind in SELF_ATTENTION)
        np.testing.assert_allclose(trace.scores(kind, 1), products + (0 if bias is None else bias), atol=1e-5)


def test_the_bias_of_a_head_and_window_is_a_part_of_the_whole(translator, translation):
    window = Window(1, 4, 2, 5)
    for kind in SELF_ATTENTION if translator.name in BIASED else ():
        whole = translation.attention.map(kind, 1).bias
        part = translation.attention.map(kind, 1, 3, window).bias
        np.testing.assert_allclose(part, whole[3, 1:4, 2:5], atol=1e-6)


def test_a_recorded_rule_grows_with_no_text(translator):
    tables = []
    for words in (3, 60):
        trace = translator.force("one " * words, "eins").attention
        tables.append(
            [0 if (b := layer.bias) is None else b.table.nbytes for layer in trace.layers["encoder"]]
        )
    assert tables[0] == tables[1]


def test_cross_attention_carries_no_encoding(translator):
    """No bias is added, and keys are projections of the memory and nothing more."""
    model, recorder = translator.model, Hooks(Capture().parts)
    memory = model.encode(random_ids(1, 6))
    model.decode(random_ids(1, 4), memory, hooks=recorder)
    layer = trace_of(recorder, model.config, lambda *_: None).layer("cross", 0)
    keys = model.decoder.layers[0].cross_attention.k_proj(memory).view(6, 4, 8).transpose(0, 1)
    assert layer.bias is None
    torch.testing.assert_close(layer.key, keys, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
@pytest.mark.filterwarnings("ignore")
def test_inference_runs_the_fused_kernel_only(translator):
    model, src = translator.model, random_ids(2, 7)
    src[1, 5:] = 0
    padding = padding_mask(src, 0)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        memory, cache = model.encode(src, padding), Cache(model.config.n_decoder_layers)
        for part in random_ids(2, 5).split([3, 1, 1], 1):
            model.decode(part, memory, padding, cache=cache)
    calls = {event.key: event.count for event in profile.key_averages()}
    kernels = {name: count for name, count in calls.items() if "scaled_dot_product" in name}
    fused = sum(count for name, count in kernels.items() if re.search("flash|efficient", name))
    assert fused == 2 + 3 * (3 + 3)
    assert not any("math" in name for name in kernels)
    assert "aten::softmax" not in calls
