"""M2M-100 and NLLB-200 models against transformers' own, on checkpoints made here."""

from __future__ import annotations

import json

import pytest
from m2m_models import write_m2m

from transformer import load_translator
from transformer.batches import forced_log_probs, hypotheses, run_batch
from transformer.storage.files import CheckpointError
from transformer.text.pairs import SentencePair
from transformer.translator import InputError

TEXT = "the cat sleeps in the old house while two dogs ran over the hills ."
TARGET = "die Katze schläft und das Haus ist klein"


@pytest.fixture(scope="module")
def nllb(tmp_path_factory):
    return load_translator(write_m2m(tmp_path_factory.mktemp("nllb"), kind="nllb"))


def test_texts_into_several_languages_are_translated_and_scored_together(nllb):
    texts = [f"eng_Latn {code} two dogs" for code in ("deu_Latn", "fra_Latn", "deu_Latn")]
    found = hypotheses(nllb, texts, beam_size=1)
    starts = [nllb.pieces(each.token_ids)[0] for each in found]
    assert starts == ["deu_Latn", "fra_Latn", "deu_Latn"]
    (scored,) = forced_log_probs(nllb, [SentencePair(texts[1], "zwei Hunde")])
    assert scored == pytest.approx(nllb.force(texts[1], "zwei Hunde").log_probs, abs=1e-4)
    with pytest.raises(InputError, match="ask for several languages"):
        run_batch(nllb, texts)
    assert run_batch(nllb, texts[::2])[0].target_tokens[0] == "deu_Latn"


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
