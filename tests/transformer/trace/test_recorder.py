from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from transformer import AttentionKind, Capture, Sampling, Window
from transformer.config import Sublayer
from transformer.decoding import DecodingState
from transformer.hooks import Hooks
from transformer.trace import trace_of

TEXT = "one two three four five"
LENGTH = 9
KINDS = list(AttentionKind)


@pytest.fixture(scope="module")
def translation(translator):
    return translator.translate(TEXT, max_length=LENGTH, capture=Capture(residual=True))


def test_capture_never_leaves_fused_attention(translator, monkeypatch):
    fused, calls = F.scaled_dot_product_attention, []

    def counted(*args, **kwargs):
        calls.append(1)
        return fused(*args, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    translator.translate(TEXT, max_length=LENGTH, capture=True)
    with_capture = len(calls)
    translator.translate(TEXT, max_length=LENGTH, capture=False)
    assert len(calls) == 2 * with_capture == 2 * (2 + LENGTH * 6)


@pytest.mark.parametrize("options", [{}, {"beam_size": 4}, {"sample": Sampling(seed=5)}])
def test_capture_changes_no_log_probability(translator, options):
    on, off = (translator.translate(TEXT, max_length=LENGTH, capture=c, **options) for c in (True, False))
    assert on.log_probs == off.log_probs
    assert on.steps == off.steps
    assert off.attention is None


@pytest.mark.parametrize("options", [{"sample": Sampling(seed=5)}, {"beam_size": 4}, {}])
def test_what_was_captured_step_by_step_is_what_a_replay_captures(translator, options):
    decoded = translator.translate(TEXT, max_length=LENGTH, **options)
    recorder = Hooks(Capture().parts)
    src_ids = torch.tensor([[*translator.ids(TEXT), 2]])
    state = DecodingState(translator.model, src_ids, recorder)
    log_probs = state.forced([[step.token_id for step in decoded.steps]], recorder)[0]
    replayed = trace_of(recorder, translator.config, lambda *_: None)
    for kind, layer in decoded.attention.places:
        found, expected = decoded.attention.weights(kind, layer), replayed.weights(kind, layer)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    chosen = [float(row[step.token_id]) for row, step in zip(log_probs, decoded.steps, strict=True)]
    np.testing.assert_allclose(decoded.log_probs, chosen, atol=1e-5)


def test_weights_times_values_are_the_output_that_the_model_used(translation):
    for kind in KINDS:
        view = translation.head(kind, 1, 3)
        np.testing.assert_allclose(view.weights @ view.value, view.output, atol=1e-4 * abs(view.value).max())
        np.testing.assert_allclose(view.query @ view.key.T / 8**0.5, view.scores, atol=1e-4)


def test_embeddings_and_positions_add_up_to_the_first_layer_s_input(translation, translator):
    for side, ids in (
        ("encoder", [*translator.ids(TEXT), 2]),
        ("decoder", [1, *(step.token_id for step in translation.steps[:-1])]),
    ):
        tokens = translator.model.embedding.weight[ids].numpy() * 32**0.5
        positions = translator.model.encoder.positions.table[: len(ids)].numpy()
        np.testing.assert_allclose(translation.trace.embeddings[side].tokens.numpy(), tokens, rtol=1e-6)
        np.testing.assert_array_equal(translation.trace.embeddings[side].positions.numpy(), positions)
        stream = translation.stream(Sublayer(side, 0, "self_attention")).before
        np.testing.assert_allclose(stream, tokens + positions, atol=1e-5)


def test_residuals_continue_from_sublayer_to_sublayer(translation):
    names = ("self_attention", "cross_attention", "feed_forward")
    chain = [translation.stream(Sublayer("decoder", layer, name)) for layer in range(3) for name in names]
    for before, after in itertools.pairwise(chain):
        assert torch.equal(before.stream, after.before)
    for residual in chain:
        torch.testing.assert_close(residual.stream, residual.before + residual.output)
        assert residual.read.shape == (LENGTH, 32)


def test_a_pre_norm_sublayer_reads_the_normalised_stream(translation, translator):
    residual = translation.stream(Sublayer("decoder", 1, "cross_attention"))
    norm = translator.model.decoder.layers[1].cross_attention_residual.norm
    torch.testing.assert_close(residual.read, norm(residual.before), atol=1e-5, rtol=0)


def test_retained_bytes_are_linear_in_the_length(translator):
    def bytes_of(words):
        target = " ".join(["eins"] * words)
        return translator.force(" ".join(["one"] * words), target).attention.nbytes

    short, double, fourfold = (bytes_of(n) for n in (31, 63, 127))
    assert double == pytest.approx(2 * short, rel=1e-3)
    assert fourfold == pytest.approx(4 * short, rel=1e-3)
    per_position = 4 * 32 * 4 * (2 + 3 + 3)
    assert short == pytest.approx(per_position * 32, rel=1e-3)


def test_a_source_of_1024_tokens_works(translator):
    text = " ".join(["one"] * 1023)
    translation = translator.translate(text, max_length=3)
    assert len(translation.source_tokens) == 1024
    view = translation.head("encoder", 0, 0, Window(1000, 1024, 0, 64))
    assert view.weights.shape == (24, 64)
    assert view.audit.passed
    assert translation.attention.nbytes < 4 * 32 * 4 * (2 + 3) * 1024 * 1.05
