"""BART models against transformers' own, on checkpoints made here."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from bart_models import bart_ids, bart_reference, write_bart
from parity import Pair, check_beam, check_forward, check_greedy

from explorer.lenses import alti, attribution, carried, score_parts
from explorer.lenses.inside.inside import look_inside
from explorer.lenses.measures.gradients import saliency
from transformer import AttentionKind, Capture, load_translator
from transformer.decode.sampling import Sampling
from transformer.exports.npz import load_trace, save_trace
from transformer.runs.scoring import forced_log_probs
from transformer.runs.wording import InputError
from transformer.storage.files import CheckpointError
from transformer.text.pairs import SentencePair

TEXT = "summarize the old house and the two dogs ran over the hills while birds sang ."
TARGET = "two dogs ran over the hills"

CASES: dict[str, dict[str, Any]] = {
    "BART": {},
    "relu, scaled": {"activation": "relu", "made": {"scale_embedding": True}, "seed": 1},
    "one layer": {"encoder_layers": 1, "decoder_layers": 1, "heads": 1, "seed": 2},
    "deep encoder, like a distilled one": {"encoder_layers": 4, "decoder_layers": 1, "seed": 3},
    "another width in the decoder": {"decoder_ffn": 20},
    "own output table": {"untied": True},
    "tokenizer.json": {"whole": True},
    "bfloat16, shards": {"dtype": torch.bfloat16, "shards": True},
}


@pytest.fixture(scope="module", params=CASES)
def pair(request, tmp_path_factory):
    directory = write_bart(tmp_path_factory.mktemp("bart"), **CASES[request.param])
    ids = tuple(bart_ids(directory, TEXT))
    return Pair(load_translator(directory), bart_reference(directory), TEXT, ids, 2, 0)


@pytest.fixture(scope="module")
def bart(tmp_path_factory):
    return load_translator(write_bart(tmp_path_factory.mktemp("bart")))


def test_logits_encoder_output_and_every_attention_are_the_reference_s(pair):
    check_forward(pair, TARGET)


def test_greedy_search_begins_with_the_start_and_writes_what_the_reference_writes(pair):
    ours = check_greedy(pair)
    assert ours.source_tokens[0] == ours.target_tokens[0] == "<s>"
    assert ours.steps[0].forced


def test_a_beam_of_four_finds_what_the_reference_s_finds_with_its_score(pair):
    check_beam(pair)


def test_every_measure_passes_the_norm_of_the_embeddings(bart, tmp_path):
    forced = bart.force(TEXT, TARGET, capture=Capture(residual=True))
    step, token = 2, forced.steps[2].token_id
    found = attribution(bart.model, forced, step, token)
    assert found.audit.passed
    slopes = saliency(bart, forced, step, token)
    assert slopes.audit.passed
    assert alti(bart.model, forced).audit.passed
    for kind in AttentionKind:
        assert carried(bart.model, forced, kind, 0, 1).audit.passed
        place = kind, 0, 1
        parts = score_parts(bart.model, forced, place, 2, 1)
        assert parts.audit.passed
        assert look_inside(bart.model, forced, place, 2).audit.passed
    save_trace(forced, tmp_path / "trace.npz", bart.model)
    assert load_trace(tmp_path / "trace.npz").attention.audit().passed


def test_a_given_output_is_scored_with_the_start_before_it(bart):
    forced = bart.force(TEXT, TARGET)
    assert forced.target_tokens[0] == "<s>"
    assert forced.text == TARGET
    (scored,) = forced_log_probs(bart, [SentencePair(TEXT, TARGET)])
    assert scored == pytest.approx(forced.log_probs, abs=1e-4)


RULES: dict[str, dict[str, Any]] = {
    "summary": {"min_length": 12, "no_repeat_ngram_size": 3, "length_penalty": 2.0, "early_stopping": True},
    "new tokens": {"min_new_tokens": 8, "no_repeat_ngram_size": 2},
    "every token once": {"no_repeat_ngram_size": 1},
    "as long as it may be": {"min_length": 20},
}


@pytest.mark.parametrize("name", RULES)
def test_rules_of_summaries_are_kept_as_the_reference_keeps_them(tmp_path, name):
    directory = write_bart(tmp_path, generation=RULES[name], seed=4)
    ids = tuple(bart_ids(directory, TEXT))
    pair = Pair(load_translator(directory), bart_reference(directory), TEXT, ids, 2, 0)
    ours = check_greedy(pair)
    check_beam(pair)
    assert len(ours.steps) > RULES[name].get("min_length", 2) - 2
    drawn = pair.translator.translate(TEXT, sample=Sampling(seed=1), beam_size=1)
    for step in (*ours.steps, *drawn.steps):
        assert step.forced == step.alternatives[0].excluded
        assert step.token_id not in [each.token_id for each in step.alternatives if each.excluded]
    assert any("keeps rules of its own: no " in note for note in ours.notes)
    save_trace(ours, tmp_path / "trace.npz", pair.translator.model)
    assert load_trace(tmp_path / "trace.npz").steps == ours.steps


def test_an_empty_text_is_refused(bart):
    with pytest.raises(InputError, match="The text is empty"):
        bart.translate(" ")


def test_a_model_saved_without_its_output_projection_opens(tmp_path):
    """As transformers saves a BartModel."""
    whole = load_translator(write_bart(tmp_path / "whole"))
    bare = load_translator(write_bart(tmp_path / "bare", bare=True))
    assert bare.model.output_bias is None
    assert torch.equal(bare.model.embedding.weight, whole.model.embedding.weight)


REFUSED = {
    "layers before": ({"normalize_before": True}, "normalize_before = True; only False"),
    "no norm of embeddings": ({"normalize_embedding": False}, "normalize_embedding = False"),
    "heads of the decoder": ({"decoder_attention_heads": 2}, "only models with equal values"),
    "rows": ({"vocab_size": 100}, "pieces, but config.json has 100 rows|shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_named(tmp_path, name):
    values, message = REFUSED[name]
    with pytest.raises(CheckpointError, match=message):
        load_translator(write_bart(tmp_path, config=values))
