"""T5 vocabularies against transformers' T5Tokenizer, on cleaned text of many scripts."""

from __future__ import annotations

import json

import pytest
from t5_models import EXTRA, pieces, reference_tokenizer

from transformer.config import TransformerConfig
from transformer.families.t5 import vocabulary
from transformer.storage.files import CheckpointError

TEXTS = [
    "translate English to German: the house is small .",
    "The HOUSE, is; (small)!? 12.5 % of 3,000",
    "das Haus schläft e\u0301 \u00e9 \ufb01ne \u00bd \u212b",
    "двадцать собак",
    "小さな猫が古い家で眠る。漢字一二三",
    "שלום עולם مرحبا بالعالم",
    "नमस्ते दुनिया",
    "🙂 👩‍👩‍👧 🇩🇪",
    "a </s> b",
    "a</s>b<unk>c<pad>",
    "the <extra_id_0> house <extra_id_9>is",
    "</s",
    "▁the▁cat",
    "a" * 500,
]


def read_vocabulary(directory, size):
    return vocabulary(directory, TransformerConfig(vocab_size=size))[0]


@pytest.fixture(scope="module", params=[EXTRA, 0])
def both(request, tmp_path_factory):
    """Our vocabulary, and the reference's; with extra ids behind the pieces, and without."""
    directory = tmp_path_factory.mktemp("vocabulary")
    (directory / "spiece.model").write_bytes(pieces())
    (directory / "tokenizer_config.json").write_text(json.dumps({"extra_ids": request.param}))
    (directory / "config.json").write_text(json.dumps({"model_type": "t5"}))
    return read_vocabulary(directory, 1000), reference_tokenizer(directory)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_cleaned_text_is_cut_into_the_reference_s_ids(both, text):
    ours, reference = both
    cut = ours.cut(text)
    assert [*cut.ids, 1] == reference(cut.clean.text).input_ids
    assert list(cut.ids) == ours.encode(cut.clean.text)


def test_ids_become_the_reference_s_text(both):
    ours, reference = both
    ids = reference("the house is small and 漢字 <extra_id_0> .").input_ids
    assert ours.decode(ids) == reference.decode(ids, skip_special_tokens=True)


def test_extra_ids_stand_behind_the_pieces_last_one_first(both):
    ours, reference = both
    found = {piece: number for piece, number in ours.source.ids.items() if piece.startswith("<extra")}
    assert found == {piece: number for piece, number in reference.get_vocab().items() if piece in found}
    assert ours.source.pieces[-1] == "<unused 999>"


def test_more_pieces_than_rows_are_refused(tmp_path):
    (tmp_path / "spiece.model").write_bytes(pieces())
    with pytest.raises(CheckpointError, match=r"pieces with its extra ids, but config\.json has 50 rows"):
        read_vocabulary(tmp_path, 50)


@pytest.mark.parametrize("listed", [7, True, 1.5, {"a": 1}, ["<extra_id_0>", 3]], ids=str)
def test_special_tokens_of_a_damaged_file_count_only_as_a_list(tmp_path, listed):
    (tmp_path / "spiece.model").write_bytes(pieces())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"additional_special_tokens": listed}))
    found = [piece for piece in read_vocabulary(tmp_path, 1000).source.ids if piece.startswith("<extra_id")]
    assert len(found) == (1 if isinstance(listed, list) else 100)
