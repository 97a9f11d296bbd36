from __future__ import annotations

import json
import math

import pytest

from transformer.__main__ import main
from transformer.study.language.kneser_ney import train
from transformer.text.vocabulary import Tokenizer

NOUNS, WORDS = ("house", "river", "old tree"), ("old", "new", "red")
TEXTS = [f"The {noun} is {word}." for noun in NOUNS for word in WORDS]


@pytest.fixture
def directory(tmp_path):
    """A directory with a tokenizer, a text and a held-out text."""
    tokenizer = Tokenizer.train(TEXTS, 300, at_most=True)
    (tmp_path / "tokenizer.model").write_bytes(tokenizer.to_bytes())
    (tmp_path / "train.txt").write_text("\n".join(TEXTS))
    (tmp_path / "held.txt").write_text("The house is red.\n\nA tree is old.\n")
    return tmp_path


def command(directory, *more):
    files = [f"{directory / name}" for name in ("train.txt", "held.txt")]
    return ["ngram", "--model", str(directory), "--text", files[0], "--data", files[1], *more]


def test_ngram_prints_the_perplexity_of_a_file(directory, capsys):
    assert main(command(directory, "--order", "3", "--json")) == 0
    printed = json.loads(capsys.readouterr().out)
    tokenizer = Tokenizer.load(directory / "tokenizer.model")
    model = train(tokenizer.encode_all(TEXTS), tokenizer.vocab_size, 3)
    logs = model.log_probs(tokenizer.encode_all(["The house is red.", "A tree is old."]))
    assert (printed["texts"], printed["words"], printed["order"]) == (2, 8, 3)
    assert printed["per_word"]["value"] == pytest.approx(math.exp(-logs.sum() / (8 + 2)), rel=1e-4)
    nats = math.log(printed["per_piece"]["value"]) * (printed["pieces"] + 2)
    assert nats == pytest.approx(-logs.sum(), rel=1e-3)
    assert main(command(directory)) == 0
    assert "perplexity per word" in capsys.readouterr().out


def test_a_file_without_text_is_refused(directory, capsys):
    (directory / "held.txt").write_text("\n\n")
    assert main(command(directory)) == 2
    assert "no text" in capsys.readouterr().err
