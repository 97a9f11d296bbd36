"""BART's vocabulary against transformers' BartTokenizer, on cleaned text of many scripts."""

from __future__ import annotations

import pytest
from bart_models import write_bart_vocabulary
from parity import TEXTS

from transformer.config import TransformerConfig
from transformer.families.bart import bart_vocabulary
from transformer.families.pieces import byte_name
from transformer.storage.files import CheckpointError


def read_vocabulary(directory, size):
    return bart_vocabulary(directory, TransformerConfig(vocab_size=size))[0]


@pytest.fixture(scope="module", params=[False, True], ids=["vocab.json", "tokenizer.json"])
def both(request, tmp_path_factory):
    """Our vocabulary, and the reference's."""
    from transformers import BartTokenizer

    directory = tmp_path_factory.mktemp("vocabulary")
    size = write_bart_vocabulary(directory, request.param)
    return read_vocabulary(directory, size), BartTokenizer.from_pretrained(directory)


@pytest.mark.parametrize("text", [*TEXTS, "a b<unk>c<pad>"], ids=range(len(TEXTS) + 1))
def test_a_cleaned_text_is_cut_into_the_reference_s_ids(both, text):
    ours, reference = both
    cut = ours.cut(text)
    assert [*cut.ids, 2] == reference(cut.clean.text).input_ids
    assert list(cut.ids) == ours.encode(cut.clean.text)
    assert len(cut.ids) == len(cut.pieces) == len(cut.words)
    assert cut.unknown == () or "<unk>" in text
    if not any(mark in text for mark in ("</s>", "<unk>")):
        assert ours.decode(cut.ids) == cut.clean.text


def test_the_mask_takes_the_space_before_it_as_in_published_files(tmp_path):
    """transformers 5 forgets this where there is no tokenizer.json."""
    ours = read_vocabulary(tmp_path, write_bart_vocabulary(tmp_path))
    assert ours.cut("a <mask> b").pieces[:3] == ("<s>", "a", "<mask>")


def test_pieces_spell_the_text_and_bytes_of_a_character_stay_together(both):
    ours, _ = both
    cut = ours.cut("the house 🙂 龘 is")
    assert cut.pieces[0] == "<s>"
    assert [group.text for group in cut.groups()] == ["the", "house", "🙂", "龘", "is"]
    assert cut.notes() == ("This model has no piece for 🙂 and 龘; it spells them in bytes.",)


def test_a_piece_is_named_by_its_text_or_by_its_bytes():
    assert byte_name("Ġhouse") == "▁house"
    assert byte_name("Ã©") == "é"
    assert byte_name("ĠâĢ") == "▁<0xE2><0x80>"
    assert byte_name("Ċ") == "<0x0A>"
    assert byte_name("<mask>") == "<mask>"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": 1}'])
def test_a_damaged_file_is_one_sentence(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"is damaged or is not a vocabulary|has no piece"):
        read_vocabulary(tmp_path, 100)


def test_a_missing_file_is_byte_name(tmp_path):
    with pytest.raises(CheckpointError, match=r"has no tokenizer.json and no vocab.json"):
        read_vocabulary(tmp_path, 100)
