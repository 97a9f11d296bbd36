from __future__ import annotations

import pytest
from corpus import number_pairs

from transformer.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer, TokenizerError

TEXTS = [
    "one two three",
    "  two  spaces, and one at the end ",
    "emoji 😀 and a family 👨‍👩‍👧",
    "tab\tand\nline",
    "<s> </s> <pad> <unk> <0xE2>",
    "Straße ſ ﬁ Ⅳ e\u0301 東京 שלום \u202e x",
    "",
]


@pytest.fixture(scope="module")
def trained() -> Tokenizer:
    return Tokenizer.train((text for pair in number_pairs(300) for text in pair), 300)


def test_special_ids_are_the_first_four(trained: Tokenizer) -> None:
    assert trained.pieces([PAD_ID, BOS_ID, EOS_ID, UNK_ID]) == ("<pad>", "<s>", "</s>", "<unk>")
    assert trained.vocab_size == 300


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_comes_back_as_it_was(trained: Tokenizer, text: str) -> None:
    assert trained.decode(trained.encode(text)) == text


@pytest.mark.parametrize("text", TEXTS)
def test_text_never_becomes_a_special_or_unknown_piece(trained: Tokenizer, text: str) -> None:
    assert not set(trained.encode(text)) & {PAD_ID, BOS_ID, EOS_ID, UNK_ID}


def test_special_ids_are_left_out_of_decoded_text(trained: Tokenizer) -> None:
    assert trained.decode([BOS_ID, *trained.encode("two"), EOS_ID, PAD_ID]) == "two"


def test_both_languages_share_one_vocabulary(trained: Tokenizer) -> None:
    assert "▁seven" in trained.pieces(trained.encode("seven"))
    assert "▁sieben" in trained.pieces(trained.encode("sieben"))


def test_many_texts_encode_as_each_alone(trained: Tokenizer) -> None:
    texts = ["one two", "drei 😀"]
    assert trained.encode_all(texts) == [trained.encode(text) for text in texts]
    assert trained.encode_all([]) == []


def test_a_model_survives_its_bytes(trained: Tokenizer) -> None:
    assert Tokenizer(trained.to_bytes()).encode("one 😀") == trained.encode("one 😀")


def test_training_twice_gives_the_same_model() -> None:
    texts = [text for pair in number_pairs(200) for text in pair]
    assert Tokenizer.train(texts, 300).to_bytes() == Tokenizer.train(texts, 300).to_bytes()


@pytest.mark.parametrize("size", [10, 100_000])
def test_impossible_vocabulary_sizes_are_refused_in_one_sentence(size: int) -> None:
    with pytest.raises(TokenizerError, match=f"{size}"):
        Tokenizer.train(["one two three"] * 20, size)


@pytest.mark.parametrize("content", [b"", b"no sentencepiece model at all"])
def test_foreign_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(TokenizerError, match="sentencepiece"):
        Tokenizer(content)


def test_a_truncated_model_is_refused(trained: Tokenizer) -> None:
    with pytest.raises(TokenizerError):
        Tokenizer(trained.to_bytes()[:1000])


def test_a_flipped_bit_in_a_piece_is_told_as_damage(tokenizer):
    damaged = bytearray(tokenizer.to_bytes())
    damaged[damaged.index("▁".encode())] ^= 0x20
    with pytest.raises(TokenizerError, match="damaged"):
        Tokenizer(bytes(damaged))
