"""Circuits of heads against a forward pass written out by hand, and against whole matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from random_models import random_language_model, random_model
from torch.nn import functional as F

from transformer import Capture
from transformer.lenses.circuits.matrices import Through, copying, matching
from transformer.lenses.circuits.path import patched, written_by
from transformer.lenses.circuits.reading import reading
from transformer.lenses.measures.score_parts import score_parts
from transformer.lenses.measures.stream import UnmeasuredError
from transformer.model.sites import AttentionKind
from transformer.runs.language.generator import TextGenerator
from transformer.runs.translator import Translator

WRITER, READER = (0, 1), (1, 0)


@pytest.fixture(scope="module", params=["rotary", "alibi"])
def run(request, translator):
    model = random_language_model(
        vocab_size=translator.config.vocab_size, positions=request.param, scale=0.5, n_layers=3
    )
    torch.manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.normal_(0.4, 0.4)
    generator = TextGenerator(model, translator.tokenizer, name="random")
    return generator, generator.force("one two three one two", capture=Capture(residual=True))


def by_hand(run, change) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the reader and log-probabilities, layer by layer; ``change`` may replace q, k or v."""
    generator, text = run
    model, config = generator.model, generator.config
    ids = torch.tensor([config.bos_id, *text.target_ids[:-1]])
    n, heads = len(ids), config.n_heads
    positions = model.decoder.positions
    x = model.embedding.weight[ids] * config.embedding_scale
    causal, weights, streams = torch.ones(n, n).tril().bool(), None, {}
    for layer in range(config.n_layers):
        block, attention = model.layer("decoder", layer), model.attention(AttentionKind.DECODER, layer)
        norm = model.residual(config.sites[AttentionKind.DECODER].sublayer(layer)).norm
        streams[layer] = x
        made = {}
        for name, linear in (
            ("query", attention.q_proj),
            ("key", attention.k_proj),
            ("value", attention.v_proj),
        ):
            own = linear(norm(x)).view(n, heads, -1)
            changed = change(name, layer, streams, lambda y, linear=linear, norm=norm: linear(norm(y)))
            if changed is not None:
                own = own.clone()
                own[:, READER[1]] = changed.view(n, heads, -1)[:, READER[1]]
            made[name] = own.transpose(0, 1)[None]
        q, k = (positions.rotate(made[name]) for name in ("query", "key"))
        scores = (q @ k.transpose(-1, -2))[0] / q.shape[-1] ** 0.5
        rule = positions.bias(layer)
        if rule is not None:
            gaps = (torch.arange(n)[:, None] - torch.arange(n)[None]).abs()
            scores = scores - positions.slopes[:, None, None] * gaps
        maps = scores.masked_fill(~causal, -torch.inf).softmax(-1)
        if layer == READER[0]:
            weights = maps[READER[1]]
        mixed = (maps @ made["value"][0]).transpose(0, 1).reshape(n, -1)
        x = x + attention.out_proj(mixed)
        inner = model.residual(_forward(config, layer)).norm(x)
        x = x + block.feed_forward(inner)
    logits = model.decoder.final_norm(x) @ model.embedding.weight.T
    table = F.log_softmax(logits, -1)
    return weights.detach().numpy(), table[torch.arange(n), list(text.target_ids)].detach().numpy()


def _forward(config, layer):
    return next(
        each
        for each in config.stacks["decoder"].passed()
        if each.layer == layer and each.name == "feed_forward"
    )


def test_the_pass_by_hand_is_the_model_s(run):
    weights, log_probs = by_hand(run, lambda *_: None)
    np.testing.assert_allclose(weights, run[1].weights("decoder", *READER), atol=1e-5)
    np.testing.assert_allclose(log_probs, run[1].log_probs, atol=1e-4)


@pytest.mark.parametrize("into", ["query", "key", "value"])
@pytest.mark.parametrize("other", [False, True])
def test_one_path_is_that_of_a_pass_by_hand(run, into: str, other: bool):
    generator, text = run
    attention = generator.model.attention(AttentionKind.DECODER, WRITER[0])
    size = generator.config.d_model // generator.config.n_heads
    columns = attention.out_proj.weight[:, WRITER[1] * size : (WRITER[1] + 1) * size]
    head = text.attention.layer(AttentionKind.DECODER, WRITER[0]).output[WRITER[1]]
    own = head @ columns.T
    torch.testing.assert_close(written_by(generator.model, text, WRITER).float(), own, atol=1e-5, rtol=1e-4)
    instead = torch.randn(own.shape, generator=torch.Generator().manual_seed(2)) if other else None

    def change(name, layer, streams, project):
        if name == into and layer == READER[0]:
            return project(streams[layer] - own + (0 if instead is None else instead))
        return None

    found = patched(
        generator.model, text, WRITER, READER, into, None if instead is None else instead.double()
    )
    weights, log_probs = by_hand(run, change)
    np.testing.assert_allclose(found.weights, weights, atol=1e-5)
    np.testing.assert_allclose(found.log_probs, log_probs, atol=1e-4)
    assert np.abs(found.log_probs - np.array(text.log_probs)).max() > 1e-3


def test_what_the_writer_wrote_itself_changes_nothing(run):
    generator, text = run
    own = written_by(generator.model, text, WRITER)
    for into in ("query", "key", "value"):
        found = patched(generator.model, text, WRITER, READER, into, own)
        np.testing.assert_allclose(found.log_probs, text.log_probs, atol=1e-4)


def test_a_writer_must_stand_before_its_reader(run):
    generator, text = run
    with pytest.raises(ValueError, match="earlier layer"):
        patched(generator.model, text, (1, 0), (1, 1))
    with pytest.raises(IndexError):
        patched(generator.model, text, WRITER, (9, 0))


@pytest.mark.parametrize("split", ["query", "key"])
def test_a_reading_is_the_sum_of_the_pairs_of_each_score(run, split: str):
    generator, text = run
    found = reading(generator.model, text, "decoder", 2, 1, split)
    assert found.audit.passed
    for query, key in ((4, 2), (3, 3), (5, 0)):
        pairs = score_parts(generator.model, text, ("decoder", 2, 1), query, key)
        assert found.writers == (pairs.queries if split == "query" else pairs.keys)
        expected = pairs.values.sum(1 if split == "query" else 0)
        np.testing.assert_allclose(found.values[:, query, key], expected, atol=1e-4)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_reading_of_a_translation_sums_to_its_scores(translator, kind: str, norm: str):
    network = random_model(vocab_size=translator.config.vocab_size, norm=norm, scale=0.6)
    model = Translator(network.eval(), translator.tokenizer, name="random")
    translation = model.force("one two three", "two one four", capture=Capture(residual=True))
    for split in ("query", "key"):
        found = reading(model.model, translation, kind, 1, 0, split)
        scores = translation.attention.scores(AttentionKind(kind), 1, 0)
        np.testing.assert_allclose(found.values.sum(0), scores, atol=1e-3)


def test_an_advantage_is_the_gap_to_the_other_keys(run):
    generator, text = run
    found = reading(generator.model, text, "decoder", 2, 1)
    seen = text.mask("decoder", 2, 1)
    cells = np.zeros_like(seen)
    cells[3, 1] = cells[5, 3] = True
    cells[0, 0] = True  # a row that sees no other key has nothing to compare with
    expected = np.mean(
        [
            found.values[:, 3, 1] - found.values[:, 3, [0, 2, 3]].mean(1),
            found.values[:, 5, 3] - found.values[:, 5, [0, 1, 2, 4, 5]].mean(1),
        ],
        0,
    )
    np.testing.assert_allclose(found.advantage(cells, seen), expected, atol=1e-5)


def score(matrix: np.ndarray) -> float:
    values = np.linalg.eigvals(matrix)
    return float(values.real.sum() / np.abs(values).sum())


def centred(norm) -> np.ndarray:
    gain = norm.weight.detach().double().numpy()
    return np.diag(gain) @ (np.eye(len(gain)) - np.ones((len(gain), len(gain))) / len(gain))


def test_scores_of_matrices_are_those_of_the_whole_matrices(run):
    generator, _ = run
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


def test_a_head_made_to_copy_has_a_score_of_one(run):
    generator, _ = run
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
