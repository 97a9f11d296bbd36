"""Vocabularies of M2M-100 and NLLB-200 against transformers' tokenizers, on cleaned text of many scripts."""

from __future__ import annotations

import json

import pytest
from m2m_models import PAIRS, english, reference_ids, write_vocabulary
from parity import TEXTS

from transformer.config import TransformerConfig
from transformer.families.m2m import M2M, NLLB, vocabulary
from transformer.storage.files import CheckpointError
from transformer.text.words import is_special


def read_vocabulary(directory, size):
    return vocabulary(directory, TransformerConfig(vocab_size=size))[0]


@pytest.fixture(scope="module", params=["m2m", "nllb"])
def both(request, tmp_path_factory):
    """Our vocabulary, its directory and its kind."""
    directory = tmp_path_factory.mktemp("vocabulary")
    size = write_vocabulary(directory, request.param)
    (directory / "config.json").write_text(json.dumps({"model_type": "m2m_100"}))
    return read_vocabulary(directory, size), directory, request.param


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_cleaned_text_is_cut_into_the_reference_s_ids(both, text):
    ours, directory, kind = both
    cut = ours.cut(f"{PAIRS[kind]} {text}")
    read = cut.clean.text.removeprefix(f"{PAIRS[kind]} ")
    assert [*cut.ids, 2] == reference_ids(directory, kind, read)
    assert len(cut.ids) == len(cut.pieces) == len(cut.words)
    assert ours.source.pieces[cut.start] == PAIRS[kind].split()[1]


def test_a_word_keeps_its_number_although_the_language_of_the_output_is_no_piece(both):
    ours, _, kind = both
    cut = ours.cut(f"{PAIRS[kind]} house  is")
    assert cut.words[0] == 0
    assert [group.text for group in cut.groups()] == [PAIRS[kind].split()[0], "house", "is"]


def test_languages_stand_behind_the_pieces_and_are_no_text(both):
    ours, _, kind = both
    assert len(ours.languages) == len(NLLB if kind == "nllb" else M2M)
    assert all(map(is_special, ours.languages))
    if kind == "nllb":
        assert ours.source.ids["eng_Latn"] == english()
        assert ours.source.pieces[-1] == "<mask>"
    ids = [ours.source.ids[ours.languages[0]], *ours.encode("the house is"), 2]
    assert ours.decode(ids) == "the house is"


def test_more_pieces_than_rows_and_gaps_in_the_ids_are_refused(tmp_path):
    size = write_vocabulary(tmp_path, "m2m")
    with pytest.raises(CheckpointError, match="pieces with its languages"):
        read_vocabulary(tmp_path, size - 1)
    (tmp_path / "vocab.json").write_text(json.dumps({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 9}))
    with pytest.raises(CheckpointError, match="does not number its pieces from 0 on"):
        read_vocabulary(tmp_path, size)
