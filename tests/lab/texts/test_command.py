from __future__ import annotations

import gzip
import json

import pytest
from programs import main


@pytest.fixture
def corpus(tmp_path):
    """A file of 60 pairs and one of two, in a folder of their own."""
    lines = [f"This is sentence number {n} of {n * n}, {n * 7} and {n * 13}.\tSatz {n}." for n in range(60)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    (tmp_path / "test.tsv").write_text("A held-out sentence.\tEin Satz.\nA held-out sentence.\tDer Satz.\n")
    return tmp_path


def lines_of(path):
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def test_text_writes_one_sentence_a_line_and_the_same_bytes_again(corpus, capsys):
    command = ["text", "--data", str(corpus / "pairs.tsv"), "--test", str(corpus / "test.tsv")]
    assert main([*command, "--held-out", "5", "--output", str(corpus / "a")]) == 0
    assert main([*command, "--held-out", "5", "--output", str(corpus / "b")]) == 0
    written = {
        name: lines_of(corpus / "a" / f"{name}.txt.gz") for name in ("train", "valid", "heldout", "test")
    }
    assert len(written["valid"]) == len(written["heldout"]) == 5
    assert written["test"] == ["A held-out sentence."]
    report = json.loads((corpus / "a" / "text.json").read_text())
    assert {name: part["sentences"] for name, part in report["parts"].items()} == {
        name: len(lines) for name, lines in written.items()
    }
    for name in written:
        file = f"{name}.txt.gz"
        assert (corpus / "a" / file).read_bytes() == (corpus / "b" / file).read_bytes()
    assert "train: " in capsys.readouterr().out


def test_text_refuses_to_hold_out_more_than_there_is(corpus, capsys):
    command = ["text", "--data", str(corpus / "pairs.tsv"), "--output", str(corpus / "a"), "--held-out", "30"]
    assert main(command) == 2
    assert "cannot be held out" in capsys.readouterr().err
