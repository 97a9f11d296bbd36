from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from forged import forged
from random_models import random_model

from transformer import AttentionKind, Sampling, interventions, save_trace
from transformer.config import Place
from transformer.exports.npz import load_trace
from transformer.trace import AttentionTrace
from transformer.translator import Translator
from transformer.view import PLACES

TEXT = "one two three four five"
RECORDS = ("query", "key", "value", "output")
KINDS = list(AttentionKind)


@pytest.fixture(scope="module")
def trace(translator: Translator) -> AttentionTrace:
    return translator.translate(TEXT, max_length=6).attention


def failed(trace: AttentionTrace) -> set[str]:
    return {check.name for check in trace.audit().checks if not check.passed}


def put(trace: AttentionTrace, place: Place, **records: torch.Tensor) -> AttentionTrace:
    """The trace with other records at a place."""
    kind, layer = place
    layers = list(trace.layers[kind])
    layers[layer] = replace(layers[layer], **records)
    return forged(trace, layers={**trace.layers, kind: tuple(layers)})


@pytest.mark.parametrize("kind", KINDS)
def test_heads_in_each_other_s_place_fail(trace: AttentionTrace, kind: AttentionKind):
    record = trace.layer(kind, 1)
    permuted = {name: getattr(record, name).roll(1, dims=0) for name in RECORDS}
    assert failed(put(trace, (kind, 1), **permuted)) == {PLACES}


@pytest.mark.parametrize("kind", KINDS)
def test_layers_in_each_other_s_place_fail(trace: AttentionTrace, kind: AttentionKind):
    layers = trace.layers[kind]
    swapped = forged(trace, layers={**trace.layers, kind: (layers[1], layers[0], *layers[2:])})
    assert failed(swapped) == {PLACES}


@pytest.mark.parametrize("kind", [AttentionKind.ENCODER, AttentionKind.CROSS])
def test_queries_and_outputs_of_another_layer_fail(trace: AttentionTrace, kind: AttentionKind):
    other = trace.layer(kind, 0)
    assert PLACES in failed(put(trace, (kind, 1), **{name: getattr(other, name) for name in RECORDS}))


@pytest.mark.parametrize("kind", [AttentionKind.ENCODER, AttentionKind.CROSS])
def test_queries_and_outputs_of_another_step_fail(trace: AttentionTrace, kind: AttentionKind):
    record = trace.layer(kind, 1)
    late = {name: getattr(record, name).roll(1, dims=1) for name in ("query", "output")}
    assert failed(put(trace, (kind, 1), **late)) == {PLACES}


def test_keys_and_values_of_another_sentence_fail(translator: Translator, trace: AttentionTrace):
    other = translator.translate("five four three two one", max_length=6).attention.layer("encoder", 0)
    assert failed(put(trace, (AttentionKind.ENCODER, 0), **{n: getattr(other, n) for n in RECORDS})) == {
        PLACES
    }


def test_a_number_that_is_none_fails(trace: AttentionTrace):
    query = trace.layer("cross", 0).query.clone()
    query[0, 0, 0] = torch.nan
    assert PLACES in failed(put(trace, (AttentionKind.CROSS, 0), query=query))


@pytest.mark.parametrize("options", [{}, {"beam_size": 4}, {"sample": Sampling(seed=3)}])
def test_whatever_way_of_decoding_is_found_in_its_place(translator: Translator, options: dict):
    assert translator.translate(TEXT, max_length=6, **options).attention.audit().placed


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned", "rotary", "shaw", "t5", "alibi"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_every_encoding_is_found_in_its_place(translator: Translator, positions: str, norm: str):
    model = random_model(vocab_size=translator.config.vocab_size, norm=norm, positions=positions)
    assert Translator(model, translator.tokenizer).translate(TEXT, max_length=6).attention.audit().placed


def test_a_changed_head_is_found_in_its_place(translator: Translator):
    run = translator.translate(TEXT, max_length=6, interventions=[interventions.ablate("cross", 1, 2)])
    assert run.attention.audit().placed


def test_a_file_cannot_know_its_place(translator: Translator, tmp_path):
    save_trace(translator.translate(TEXT, max_length=6), tmp_path / "run.npz", translator.model)
    report = load_trace(tmp_path / "run.npz").attention.audit()
    assert report.passed
    assert report.imported
    assert not report.placed
