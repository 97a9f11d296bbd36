"""mBART-50 models against transformers' own, on checkpoints made here."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from bart_models import mbart_ids, write_mbart
from forged import forged
from parity import TEXTS

from explorer.lenses.inside.parts import embedding_part
from transformer import Capture, load_translator
from transformer.audit import audit_embedding
from transformer.storage.files import CheckpointError
from transformer.trace import EmbeddingTrace

TEXT = "the cat sleeps in the old house while two dogs ran over the hills ."
TARGET = "die Katze schläft und das Haus ist klein"
PAIR = "en_XX de_DE"


@pytest.fixture(scope="module")
def mbart(tmp_path_factory):
    return load_translator(write_mbart(tmp_path_factory.mktemp("mbart")))


@pytest.fixture(scope="module")
def forced(mbart):
    return mbart.force(f"{PAIR} {TEXT}", TARGET, capture=Capture(residual=True))


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_the_tokens_of_a_text_are_the_reference_s(tmp_path_factory, mbart, text):
    directory = write_mbart(tmp_path_factory.mktemp("tokens"), encoder_layers=1, decoder_layers=1)
    cut = mbart.tokenizer.cut(f"{PAIR} {text}")
    assert [*cut.ids, 2] == mbart_ids(directory, cut.clean.text.removeprefix(f"{PAIR} "))


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
    changed = forged(trace, embeddings=trace.embeddings | {"encoder": moved})
    assert audit_embedding(trace, 1e-5).passed
    assert not audit_embedding(changed, 1e-5).passed


def _turned(norm):
    other = torch.nn.LayerNorm(len(norm.weight))
    other.weight.data.copy_(norm.weight.roll(1))
    other.bias.data.copy_(norm.bias)
    return other


def test_a_vocabulary_of_25_languages_is_refused_by_its_size(tmp_path):
    directory = write_mbart(tmp_path)
    rows = load_translator(directory).config.vocab_size
    with pytest.raises(
        CheckpointError, match="25 languages, which puts the language behind the text; only mBART-50"
    ):
        load_translator(write_mbart(tmp_path / "old", made={"vocab_size": rows - 27}))
