"""M2M-100 and NLLB-200 models against transformers' own, on checkpoints made here."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from m2m_models import PAIRS, reference, reference_ids, write_m2m
from parity import Pair, check_beam, check_forward, check_greedy

from explorer.lenses import alti, attribution, carried, score_parts
from explorer.lenses.inside.inside import look_inside
from transformer import AttentionKind, Capture, load_translator
from transformer.exports.npz import load_trace, save_trace
from transformer.runs.batch import run_batch
from transformer.runs.scoring import forced_log_probs
from transformer.runs.wording import InputError
from transformer.storage.files import CheckpointError
from transformer.text.pairs import SentencePair

TEXT = "the cat sleeps in the old house while two dogs ran over the hills ."
TARGET = "die Katze schläft und das Haus ist klein"

CASES: dict[str, dict[str, Any]] = {
    "M2M-100": {},
    "NLLB": {"kind": "nllb", "seed": 1},
    "one layer": {"encoder_layers": 1, "decoder_layers": 1, "heads": 1, "seed": 2},
    "deep encoder, gelu": {"encoder_layers": 4, "decoder_layers": 1, "activation": "gelu", "kind": "nllb"},
    "shards": {"shards": True},
    "bfloat16": {"dtype": torch.bfloat16},
}


@pytest.fixture(scope="module", params=CASES)
def pair(request, tmp_path_factory):
    directory = write_m2m(tmp_path_factory.mktemp("m2m"), **CASES[request.param])
    kind = CASES[request.param].get("kind", "m2m")
    translator, ids = load_translator(directory), tuple(reference_ids(directory, kind, TEXT))
    first = translator.tokenizer.source.ids[PAIRS[kind].split()[1]]
    return Pair(translator, reference(directory), f"{PAIRS[kind]} {TEXT}", ids, 2, first)


def test_logits_encoder_output_and_every_attention_are_the_reference_s(pair):
    check_forward(pair, TARGET)


def test_greedy_search_begins_with_the_language_and_writes_what_the_reference_writes(pair):
    ours = check_greedy(pair)
    assert ours.steps[0].token_id == pair.first
    assert ours.steps[0].forced


def test_a_beam_of_four_finds_what_the_reference_s_finds_with_its_score(pair):
    check_beam(pair)


@pytest.fixture(scope="module")
def nllb(tmp_path_factory):
    return load_translator(write_m2m(tmp_path_factory.mktemp("nllb"), kind="nllb"))


def test_every_measure_sums_to_what_the_model_computed(nllb, tmp_path):
    forced = nllb.force(f"eng_Latn deu_Latn {TEXT}", TARGET, capture=Capture(residual=True))
    assert attribution(nllb.model, forced, 2, forced.steps[2].token_id).audit.passed
    assert alti(nllb.model, forced).audit.passed
    for kind in AttentionKind:
        assert carried(nllb.model, forced, kind, 0, 1).audit.passed
        assert score_parts(nllb.model, forced, (kind, 1, 1), 2, 1).audit.passed
        assert look_inside(nllb.model, forced, (kind, 1, 1), 2).audit.passed
    save_trace(forced, tmp_path / "trace.npz", nllb.model)
    assert load_trace(tmp_path / "trace.npz").attention.audit().passed


def test_texts_into_several_languages_are_translated_and_scored_together(nllb):
    texts = [f"eng_Latn {code} two dogs" for code in ("deu_Latn", "fra_Latn", "deu_Latn")]
    found = nllb.hypotheses(texts, beam_size=1)
    starts = [nllb.pieces(each.token_ids)[0] for each in found]
    assert starts == ["deu_Latn", "fra_Latn", "deu_Latn"]
    (scored,) = forced_log_probs(nllb, [SentencePair(texts[1], "zwei Hunde")])
    assert scored == pytest.approx(nllb.force(texts[1], "zwei Hunde").log_probs, abs=1e-4)
    with pytest.raises(InputError, match="ask for several languages"):
        run_batch(nllb, texts)
    assert run_batch(nllb, texts[::2])[0].target_tokens[0] == "deu_Latn"


@pytest.mark.parametrize("text", ["two dogs", "eng_Latn two dogs", "deu two dogs", "eng_Latn xyz_Latn dogs"])
def test_a_text_without_both_languages_is_refused_in_one_sentence(nllb, text):
    with pytest.raises(InputError, match="knows 202 languages; begin the text with the one that it is in"):
        nllb.translate(text)
    with pytest.raises(InputError, match="The text is empty"):
        nllb.translate("eng_Latn deu_Latn")


REFUSED = {
    "layers after": ({"normalize_before": False}, "normalize_before = False; only True"),
    "learned positions": ({"static_position_embeddings": False}, "static_position_embeddings = False"),
    "heads of the decoder": ({"decoder_attention_heads": 2}, "only models with equal values"),
    "rows": ({"vocab_size": 100}, "pieces with its languages, but config.json has 100 rows|shape"),
    "depth": ({"encoder_layers": 3}, "that config.json asks for"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_named(tmp_path, name):
    values, message = REFUSED[name]
    with pytest.raises(CheckpointError, match=message):
        load_translator(write_m2m(tmp_path, config=values))


def test_a_vocabulary_without_its_last_pieces_is_refused(tmp_path):
    """The languages would get the ids of these pieces."""
    directory = write_m2m(tmp_path)
    path = directory / "vocab.json"
    listed = json.loads(path.read_text())
    path.write_text(json.dumps(dict(list(listed.items())[:-7])))
    with pytest.raises(CheckpointError, match=r"lacks 7 pieces of sentencepiece\.bpe\.model"):
        load_translator(directory)


def test_what_old_files_hold_besides_is_ignored_and_said(tmp_path):
    translator = load_translator(write_m2m(tmp_path, old=True))
    assert any("which no model reads; it is ignored" in note for note in translator.notes)
