from __future__ import annotations

import pytest
import torch
from random_models import random_ids, random_model

from transformer.attention import Cache, LayerCache
from transformer.audit import audit_layer
from transformer.encodings import REGISTRY, BiasRule, PositionalEncoding
from transformer.hooks import Capture, Hooks
from transformer.trace import trace_of


def pair(length, batch=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(batch, 3, length, 4, generator=generator) for _ in range(2))


@pytest.mark.parametrize("lengths", [[1] * 70, [5, 60, 1, 200], [64, 1], [130]])
def test_a_growing_cache_holds_all_that_was_appended(lengths):
    cache, parts = LayerCache(grows=True), [pair(n, seed=i) for i, n in enumerate(lengths)]
    for part in parts:
        kept = cache.update(lambda part=part: part)
    for place in range(2):
        assert torch.equal(kept[place], torch.cat([part[place] for part in parts], 2))
    assert cache.length == sum(lengths)


def test_selected_rows_go_on_growing_from_their_own_past():
    cache, first, second = LayerCache(grows=True), pair(3), pair(1, batch=3, seed=1)
    cache.update(lambda: first)
    rows = torch.tensor([1, 1, 0])
    cache.select(rows)
    key, _ = cache.update(lambda: second)
    assert torch.equal(key, torch.cat([first[0][rows], second[0]], 2))


def test_a_fixed_cache_computes_once():
    cache, calls = LayerCache(grows=False), []

    def project():
        calls.append(1)
        return pair(4)

    first = cache.update(project)
    assert all(map(torch.equal, cache.update(project), first))
    assert len(calls) == 1


@pytest.mark.parametrize("batch", [1, 2])
def test_a_fixed_cache_selects_rows(batch):
    cache, kept = LayerCache(grows=False), pair(4, batch=batch)
    cache.update(lambda: kept)
    rows = torch.tensor([batch - 1, 0, 0])
    cache.select(rows)
    assert torch.equal(cache.update(lambda: kept)[1], kept[1][rows])


def test_rows_with_the_same_source_keep_cross_attention_as_it_is():
    cache = Cache(1)
    kept = cache.cross[0].update(lambda: pair(4))
    cache.select(torch.tensor([1, 0]), same_source=True)
    assert all(map(torch.equal, cache.cross[0].update(lambda: pair(9)), kept))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("chunks", [[1] * 9, [4, 1, 4], [9]])
def test_cached_decoding_equals_uncached(norm, chunks):
    model, src, tgt = random_model(norm=norm), random_ids(2, 6), random_ids(2, 9, seed=1)
    src[1, 4:] = 0
    padding = src != 0
    memory = model.encode(src, padding)
    cache = Cache(model.config.n_decoder_layers)
    parts = [model.decode(part, memory, padding, cache=cache) for part in tgt.split(chunks, 1)]
    torch.testing.assert_close(torch.cat(parts, 1), model.decode(tgt, memory, padding), atol=1e-5, rtol=0)
    assert cache.length == 9


def test_recording_each_cached_step_equals_one_uncached_pass():
    model, src, tgt = random_model(), random_ids(1, 6), random_ids(1, 9, seed=1)
    memory, cache = model.encode(src), Cache(model.config.n_decoder_layers)
    stepped, whole = (Hooks(Capture(residual=True).parts) for _ in range(2))
    for token in tgt.split(1, 1):
        model.decode(token, memory, cache=cache, hooks=stepped)
    model.decode(tgt, memory, hooks=whole)
    found, expected = (trace_of(each, model.config, lambda _: None) for each in (stepped, whole))
    for kind in ("decoder", "cross"):
        for layer in range(3):
            assert abs(found.weights(kind, layer) - expected.weights(kind, layer)).max() < 1e-5
            assert abs(found.scores(kind, layer) - expected.scores(kind, layer)).max() < 1e-4
            assert (found.mask(kind, layer) == expected.mask(kind, layer)).all()
    for name, value in expected.tensors.items():
        torch.testing.assert_close(found.tensors[name], value, atol=1e-4, rtol=0)
    torch.testing.assert_close(found.embeddings["decoder"].input, expected.embeddings["decoder"].input)


class Turning(PositionalEncoding):
    """Stands for the encodings to come: turns queries and keys by their positions, and adds a bias."""

    def rotate(self, x, first=0):
        angles = torch.arange(first, first + x.shape[2])[:, None] * 0.3
        one, other = x.chunk(2, -1)
        sine, cosine = angles.sin(), angles.cos()
        return torch.cat([one * cosine - other * sine, one * sine + other * cosine], -1)

    def bias(self, layer):
        return BiasRule("alibi", torch.arange(4.0))


@pytest.mark.parametrize("chunks", [[1] * 9, [4, 1, 4]])
def test_rotations_and_biases_are_the_same_cached_and_recorded(monkeypatch, chunks):
    monkeypatch.setitem(REGISTRY, "turning", Turning)
    model, src, tgt = random_model(positions="turning"), random_ids(1, 6), random_ids(1, 9, seed=1)
    recorder, cache = Hooks(Capture().parts), Cache(model.config.n_decoder_layers)
    memory = model.encode(src, hooks=recorder)
    parts = [model.decode(part, memory, cache=cache, hooks=recorder) for part in tgt.split(chunks, 1)]
    torch.testing.assert_close(torch.cat(parts, 1), model.decode(tgt, memory), atol=1e-5, rtol=0)
    trace = trace_of(recorder, model.config, lambda *_: None)
    for place in trace.places:
        assert all(check.passed for check in audit_layer(trace.layer(*place)))
    assert trace.layer("encoder", 0).bias is not None
    assert trace.layer("cross", 0).bias is None


def test_queries_and_keys_are_both_rotated_and_values_are_not(monkeypatch):
    monkeypatch.setitem(REGISTRY, "turning", Turning)
    layers = []
    for positions in ("none", "turning"):
        recorder = Hooks(Capture().parts)
        model = random_model(positions=positions)
        model.encode(random_ids(1, 6), hooks=recorder)
        layers.append(trace_of(recorder, model.config, lambda *_: None).layer("encoder", 0))
    plain, turned = layers
    rotate = Turning(random_model().config).rotate
    torch.testing.assert_close(turned.query, rotate(plain.query[None])[0])
    torch.testing.assert_close(turned.key, rotate(plain.key[None])[0])
    assert torch.equal(turned.value, plain.value)
