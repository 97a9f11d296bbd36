"""Circuits of heads against whole matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from random_models import random_language_model, random_model

from lenses.circuits.matrices import Through, copying, matching
from lenses.measures.stream import UnmeasuredError
from transformer.model.sites import AttentionKind
from transformer.runs.language.generator import TextGenerator


@pytest.fixture(scope="module", params=["rotary", "alibi"])
def generator(request, translator):
    model = random_language_model(
        vocab_size=translator.config.vocab_size, positions=request.param, scale=0.5, n_layers=3
    )
    torch.manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.normal_(0.4, 0.4)
    return TextGenerator(model, translator.tokenizer, name="random")


def score(matrix: np.ndarray) -> float:
    values = np.linalg.eigvals(matrix)
    return float(values.real.sum() / np.abs(values).sum())


def centred(norm) -> np.ndarray:
    gain = norm.weight.detach().double().numpy()
    return np.diag(gain) @ (np.eye(len(gain)) - np.ones((len(gain), len(gain))) / len(gain))


def test_scores_of_matrices_are_those_of_the_whole_matrices(generator):
    model, config = generator.model, generator.config
    table = model.embedding.weight.detach().double().numpy()
    size = config.d_model // config.n_heads
    own, through = copying(model), matching(model, 3, through=Through(0, 1))
    plain = matching(model, 3)
    for layer, head in ((0, 1), (2, 0)):
        rows = slice(head * size, (head + 1) * size)
        attention = model.attention(AttentionKind.DECODER, layer)
        norm = model.residual(config.sites[AttentionKind.DECODER].sublayer(layer)).norm
        q, k, v = (
            each.weight.detach().double().numpy()[rows] @ centred(norm)
            for each in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        o = attention.out_proj.weight.detach().double().numpy()[:, rows]
        whole = table @ centred(model.decoder.final_norm) @ o @ v @ table.T
        assert own[layer, head] == pytest.approx(score(whole), abs=1e-3)
        queries = turned(model, table @ q.T, 10)
        keys = turned(model, table @ k.T, 7)
        assert plain[layer, head] == pytest.approx(score(queries @ keys.T), abs=1e-3)
        if layer == 2:
            first = model.attention(AttentionKind.DECODER, 0)
            before = model.residual(config.sites[AttentionKind.DECODER].sublayer(0)).norm
            v0 = first.v_proj.weight.detach().double().numpy()[size : 2 * size] @ centred(before)
            o0 = first.out_proj.weight.detach().double().numpy()[:, size : 2 * size]
            passed = turned(model, table @ v0.T @ o0.T @ k.T, 7)
            assert through[layer, head] == pytest.approx(score(queries @ passed.T), abs=1e-3)
    assert np.isnan(through[0]).all()
    assert np.isfinite(through[1:]).all()


def turned(model, vectors: np.ndarray, at: int) -> np.ndarray:
    """Vectors (pieces, d_head) as they are at a position: pairs of dimensions turned by its angles."""
    positions = model.decoder.positions
    if not hasattr(positions, "sine"):
        return vectors
    sine, cosine = (each[at].double().numpy() for each in (positions.sine, positions.cosine))
    found = np.empty_like(vectors)
    found[:, 0::2] = vectors[:, 0::2] * cosine - vectors[:, 1::2] * sine
    found[:, 1::2] = vectors[:, 0::2] * sine + vectors[:, 1::2] * cosine
    return found


def test_a_head_made_to_copy_has_a_score_of_one(generator):
    model = random_language_model(vocab_size=generator.config.vocab_size, n_layers=1)
    attention, size = model.attention(AttentionKind.DECODER, 0), model.config.d_model // model.config.n_heads
    with torch.no_grad():
        attention.v_proj.weight.zero_()
        attention.out_proj.weight.zero_()
        attention.v_proj.weight[:size, :size] = torch.eye(size)
        attention.out_proj.weight[:size, :size] = torch.eye(size)
        attention.v_proj.weight[size : 2 * size, :size] = torch.eye(size)
        attention.out_proj.weight[:size, size : 2 * size] = -torch.eye(size)
        for norm in (model.residual(model.config.sites[AttentionKind.DECODER].sublayer(0)).norm,):
            norm.weight.fill_(1.0)
        model.decoder.final_norm.weight.fill_(1.0)
    found = copying(model)
    assert found[0, 0] > 0.9
    assert found[0, 1] == pytest.approx(-found[0, 0], abs=1e-4)


def test_models_without_such_heads_are_refused(translator):
    post = random_model(vocab_size=translator.config.vocab_size, norm="post")
    with pytest.raises(UnmeasuredError, match="pre-norm"):
        copying(post)
    with pytest.raises(UnmeasuredError, match="masked self-attention"):
        copying(post, "encoder")
    with pytest.raises(ValueError, match="0 or more"):
        matching(random_language_model(vocab_size=translator.config.vocab_size), -1)
