"""Marian vocabularies against transformers' MarianTokenizer, and files that are not vocabularies."""

from __future__ import annotations

import json

import pytest
from marian_models import reference_tokenizer, sentencepiece_model, write_vocabulary

from transformer.config import TransformerConfig
from transformer.families.marian import vocabulary
from transformer.families.pieces import pieces_by_id
from transformer.storage.files import CheckpointError
from transformer.text.typed import without_surrogates

TEXTS = [
    "the cat sat on a mat .",
    "The CAT, sat; on (a) mat!? 12.5 % of 3,000",
    "  the   cat\t\tsat \n on  ",
    "die Katze saß über Hügel",
    "a </s> b",
    "a</s>b<unk>c<pad>",
    "</s>",
    "<unk><unk>",
    "<pad> the cat",
    "</s",
    "</S> <s> <0x41>",
    ">>fra<< the cat",
    ">>fra<<the cat",
    " >>fra<< the cat",
    ">>xyz<< the cat",
    ">>fra<<",
    ">><< the",
    ">>fra the cat",
    "the >>fra<< cat",
    "</s>>>fra<< the cat",
    ">>fra<< </s> >>spa<<the",
    ">>a\nb<< the",
    "e\u0301 \u00e9 \ufb01ne \u00bd \u212b",
    "日本語 と 漢字",
    "שלום עולם مرحبا",
    "🙂 👩‍👩‍👧 🇩🇪",
    "\u200b\u200d\ufeff",
    "\x00a\x01\x7f",
    "▁the▁cat",
    "$%&#@ <script>alert(1)</script> {{x}} \\n %s",
    "a" * 3000,
    "cat " * 400,
    "\u202eright to left\u202c",
    "",
    "   ",
]


def read_vocabulary(directory, source, target, separate):
    sizes = {"vocab_size": source, "target_vocab_size": target if separate else None}
    return vocabulary(
        directory, TransformerConfig(**sizes, eos_id=0, pad_id=1, shared_embeddings=not separate)
    )[0]


@pytest.fixture(scope="module", params=["one", "languages", "separate"])
def both(request, tmp_path_factory):
    """Our vocabulary, and the reference's."""
    directory = tmp_path_factory.mktemp("vocabulary")
    separate = request.param == "separate"
    sizes = write_vocabulary(directory, separate=separate, languages=request.param == "languages")
    (directory / "config.json").write_text(json.dumps({"model_type": "marian"}))
    return read_vocabulary(directory, *sizes, separate), reference_tokenizer(directory)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_is_cut_into_the_reference_s_ids(both, text):
    ours, reference = both
    assert [*ours.encode(text), 0] == reference(text).input_ids
    assert [*ours.target.encode(text), 0] == reference(text_target=text).input_ids


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_as_typed_is_cut_into_the_ids_of_what_is_read(both, text):
    ours, _ = both
    cut = ours.cut(text)
    assert list(cut.ids) == ours.encode(cut.clean.text)
    assert cut.clean.text == ours.read(text)
    assert len(cut.words) == len(cut.pieces) == len(cut.ids)
    assert sorted(cut.words) == list(cut.words)


def test_ids_become_the_reference_s_pieces_and_text(both):
    ours, reference = both
    for start in range(0, len(ours.target.pieces), 7):
        ids = [number % len(ours.target.pieces) for number in range(start, start + 9)]
        assert list(ours.pieces(ids)) == reference.convert_ids_to_tokens(ids)
        assert ours.decode(ids) == reference.decode(ids, skip_special_tokens=True)


def test_languages_are_the_pieces_in_double_angles(tmp_path):
    sizes = write_vocabulary(tmp_path, languages=True)
    named = read_vocabulary(tmp_path, *sizes, False).languages
    assert named == (">>fra<<", ">>spa<<", ">>por<<")


def test_a_number_without_a_piece_is_named(tmp_path):
    size, _ = write_vocabulary(tmp_path)
    found = read_vocabulary(tmp_path, size + 5, size + 5, False)
    assert found.pieces([size + 1]) == (f"<unused {size + 1}>",)


def test_a_word_without_a_piece_still_begins_a_word(tmp_path):
    found = read_vocabulary(tmp_path, *write_vocabulary(tmp_path), False)
    cut = found.cut("the 語 cat 語s")
    assert [group.text for group in cut.groups()] == ["the", "語", "cat", "語s"]
    assert cut.unknown == ("語",)
    assert "<unk:語>" in "".join(cut.pieces)


def test_lone_surrogates_are_replaced(tmp_path):
    found = read_vocabulary(tmp_path, *write_vocabulary(tmp_path), False)
    assert found.read("a\ud800b  \t") == "a\ufffdb"
    assert found.encode(found.read("\ud83d\ude42")) == found.encode("🙂")


def refused(directory, message, sizes=(100_000, 100_000)):
    with pytest.raises(CheckpointError, match=message) as caught:
        read_vocabulary(directory, *sizes, False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["source.spm", "target.spm", "vocab.json"])
def test_a_missing_file_is_named(tmp_path, name):
    write_vocabulary(tmp_path)
    (tmp_path / name).unlink()
    refused(tmp_path, name)


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"hello", sentencepiece_model("a b c d")[:200]])
def test_what_is_no_sentencepiece_model_is_refused(tmp_path, content):
    write_vocabulary(tmp_path)
    (tmp_path / "target.spm").write_bytes(content)
    refused(tmp_path, r"target\.spm is (damaged|empty)")


def test_a_sentencepiece_bomb_is_refused_by_its_size(tmp_path):
    write_vocabulary(tmp_path)
    with (tmp_path / "source.spm").open("wb") as file:
        file.truncate(200 * 2**20)
    refused(tmp_path, r"source\.spm is larger than 16 MiB")


def test_a_json_bomb_is_refused_by_its_size(tmp_path):
    write_vocabulary(tmp_path)
    with (tmp_path / "vocab.json").open("wb") as file:
        file.truncate(2**30)
    refused(tmp_path, r"vocab\.json is larger than 16 MiB")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"</s>": 0, "<unk>": 1', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[1, 2]", "not a JSON object"),
        ('{"</s>": 0, "<unk>": 1}', "no piece <pad>"),
        ('{"</s>": 0, "<pad>": 1}', "no piece <unk>"),
        ('{"</s>": 0, "<unk>": 1, "<pad>": 2, "a": 2}', "same number"),
        ('{"</s>": 0, "<unk>": 1, "<pad>": 1000000000}', "not from 0 to 99,999"),
        ('{"</s>": 0, "<unk>": 1, "<pad>": -1}', "not from 0 to 99,999"),
        ('{"</s>": 0, "<unk>": true, "<pad>": 2}', "not from 0 to 99,999"),
        ('{"</s>": 0, "<unk>": "1", "<pad>": 2}', "not from 0 to 99,999"),
        ('{"</s>": 0, "<unk>": [1], "<pad>": 2}', "not from 0 to 99,999"),
        ('{"</s>": 0, "<unk>": ' + "9" * 5000 + "}", "not valid JSON"),
    ],
    ids=range(12),
)
def test_a_vocabulary_that_numbers_no_pieces_is_refused(tmp_path, content, message):
    write_vocabulary(tmp_path)
    (tmp_path / "vocab.json").write_text(content)
    refused(tmp_path, message)


def test_two_vocabularies_for_one_table_are_refused(tmp_path):
    refused_sizes = write_vocabulary(tmp_path, separate=True)
    refused(tmp_path, "two vocabularies", refused_sizes)


def test_a_piece_that_no_page_can_send_is_replaced():
    assert pieces_by_id({"\ud800": 0, "▁a": 1}, 3, without_surrogates) == ["\ufffd", "▁a", "<unused 2>"]
