"""mBART-50 models against transformers' own, on checkpoints made here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from bart_models import mbart_ids, mbart_reference, write_mbart
from parity import TEXTS, Pair, check_beam, check_forward, check_greedy

from explorer.lenses import alti, attribution, carried, score_parts
from explorer.lenses.inside.inside import look_inside
from explorer.lenses.inside.logit_lens import logit_lens
from explorer.lenses.inside.parts import embedding_part
from explorer.lenses.measures.gradients import saliency
from transformer import AttentionKind, Capture, load_translator
from transformer.exports.npz import load_trace, save_trace
from transformer.runs.wording import InputError
from transformer.storage.files import CheckpointError
from transformer.trace.audit import audit_embedding
from transformer.trace.records import EmbeddingTrace

TEXT = "the cat sleeps in the old house while two dogs ran over the hills ."
TARGET = "die Katze schläft und das Haus ist klein"
PAIR = "en_XX de_DE"

CASES: dict[str, dict[str, Any]] = {
    "fine-tuned": {},
    "pre-trained": {"activation": "gelu", "made": {"scale_embedding": False}, "seed": 1},
    "one layer": {"encoder_layers": 1, "decoder_layers": 1, "heads": 1, "seed": 2},
    "deep encoder": {"encoder_layers": 4, "decoder_layers": 1, "seed": 3},
    "own output table": {"untied": True},
    "shards": {"shards": True},
    "bfloat16": {"dtype": torch.bfloat16},
}


@pytest.fixture(scope="module", params=CASES)
def pair(request, tmp_path_factory):
    directory = write_mbart(tmp_path_factory.mktemp("mbart"), **CASES[request.param])
    translator, model = load_translator(directory), mbart_reference(directory)
    ids = tuple(mbart_ids(directory, TEXT))
    return Pair(translator, model, f"{PAIR} {TEXT}", ids, 2, translator.tokenizer.source.ids["de_DE"])


@pytest.fixture(scope="module")
def mbart(tmp_path_factory):
    return load_translator(write_mbart(tmp_path_factory.mktemp("mbart")))


@pytest.fixture(scope="module")
def forced(mbart):
    return mbart.force(f"{PAIR} {TEXT}", TARGET, capture=Capture(residual=True))


def test_logits_encoder_output_and_every_attention_are_the_reference_s(pair):
    check_forward(pair, TARGET)


def test_greedy_search_begins_with_the_language_and_writes_what_the_reference_writes(pair):
    ours = check_greedy(pair)
    assert ours.steps[0].token_id == pair.first
    assert ours.steps[0].forced


def test_a_beam_of_four_finds_what_the_reference_s_finds_with_its_score(pair):
    check_beam(pair)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_the_tokens_of_a_text_are_the_reference_s(tmp_path_factory, mbart, text):
    directory = write_mbart(tmp_path_factory.mktemp("tokens"), encoder_layers=1, decoder_layers=1)
    cut = mbart.tokenizer.cut(f"{PAIR} {text}")
    assert [*cut.ids, 2] == mbart_ids(directory, cut.read.text.removeprefix(f"{PAIR} "))


def test_every_measure_passes_the_norm_of_the_embeddings(mbart, forced, tmp_path):
    step, token = 2, forced.steps[2].token_id
    found = attribution(mbart.model, forced, step, token)
    assert found.audit.passed
    assert alti(mbart.model, forced).audit.passed
    assert saliency(mbart, forced, step, token).audit.passed
    assert all(check.passed for check in logit_lens(mbart.model, forced, step)[1])
    for kind in AttentionKind:
        assert carried(mbart.model, forced, kind, 0, 1).audit.passed
        assert score_parts(mbart.model, forced, (kind, 0, 1), 2, 1).audit.passed
        assert look_inside(mbart.model, forced, (kind, 1, 1), 2).audit.passed
    save_trace(forced, tmp_path / "trace.npz", mbart.model)
    assert load_trace(tmp_path / "trace.npz").attention.audit().passed


def test_a_token_enters_through_row_scale_position_and_norm(mbart, forced):
    part = embedding_part(mbart.model, forced, "encoder", 3, mbart.ids(forced.source_text)[3])
    assert all(check.passed for check in part.checks)
    total = part.scaled + part.position
    by_hand = (total - total.mean()) / (total.var() + 1e-5) ** 0.5 * part.normed.weight + part.normed.bias
    assert abs(by_hand - part.input).max() < 1e-4


@pytest.mark.parametrize("change", ["rows", "gain", "no norm"])
def test_an_audit_of_embeddings_sees_what_stands_at_another_place(forced, change):
    trace = forced.attention
    entered = trace.embeddings["encoder"]
    moved: EmbeddingTrace = {
        "rows": lambda: replace(entered, tokens=entered.tokens.roll(1, 0)),
        "gain": lambda: replace(entered, norm=_turned(entered.norm)),
        "no norm": lambda: replace(entered, norm=None),
    }[change]()
    changed = replace(trace, embeddings=trace.embeddings | {"encoder": moved})
    assert audit_embedding(trace, 1e-5).passed
    assert not audit_embedding(changed, 1e-5).passed


def _turned(norm):
    other = torch.nn.LayerNorm(len(norm.weight))
    other.weight.data.copy_(norm.weight.roll(1))
    other.bias.data.copy_(norm.bias)
    return other


def test_a_text_without_both_languages_is_refused_in_one_sentence(mbart):
    with pytest.raises(InputError, match="knows 52 languages; begin the text with the one that it is in"):
        mbart.translate("two dogs")


OLD = "25 languages, which puts the language behind the text; only mBART-50"
REFUSED = {
    "cc25 by its tokenizer": ({"tokenizer_class": "MBartTokenizer"}, OLD),
    "cc25 by its size": ({"vocab_size": 250_027}, OLD),
    "layers after": ({"normalize_before": False}, "normalize_before = False; only True"),
    "no norm of embeddings": ({"normalize_embedding": False}, "normalize_embedding = False"),
    "positions": ({"max_position_embeddings": 128}, "embed_positions.weight has the shape"),
    "experts": ({"activation_function": "relu2"}, "the activation 'relu2'; supported are"),
    "rows": ({"vocab_size": 100}, "pieces with its languages, but config.json has 100 rows|shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_named(tmp_path, name):
    values, message = REFUSED[name]
    with pytest.raises(CheckpointError, match=message):
        load_translator(write_mbart(tmp_path, config=values))


def test_a_vocabulary_of_25_languages_is_refused_by_its_size(tmp_path):
    directory = write_mbart(tmp_path)
    rows = load_translator(directory).config.vocab_size
    with pytest.raises(CheckpointError, match=OLD):
        load_translator(write_mbart(tmp_path / "old", made={"vocab_size": rows - 27}))


def test_a_model_saved_without_its_output_projection_opens(tmp_path):
    whole = load_translator(write_mbart(tmp_path / "whole", made={}))
    bare = load_translator(write_mbart(tmp_path / "bare", bare=True))
    text = f"{PAIR} two dogs"
    assert bare.ids(text) == whole.ids(text)
    assert bare.model.output_bias is None
    assert torch.equal(bare.model.embedding.weight, whole.model.embedding.weight)
