"""`train --encoder-from` and `pretraining`: runs in pairs, compared on the same sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs import main

LINES = ["one two three\tthree two one", "two one\tone two", "three three one\tone three three"]
SMALL = ["--d-model", "32", "--d-ff", "64", "--n-heads", "4", "--positions", "rotary", "--device", "cpu"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One pair of runs of a few steps, and the language model that one of them began with."""
    folder = tmp_path_factory.mktemp("runs")
    pairs, text = folder / "pairs.tsv", folder / "text.txt"
    pairs.write_text("\n".join(LINES * 20), "utf-8")
    text.write_text("\n".join(line.split("\t")[0] for line in LINES * 20), "utf-8")
    sizes = ["--vocab-size", "300", "--smaller-vocabulary", "--steps", "6", "--n-layers", "2"]
    files = ["--text", str(pairs) + ":1", "--valid", str(text), "--activation", "relu"]
    output = ["--output", str(folder / "lm")]
    assert main(["train-lm", "--preset", "lm-tiny", *files, *output, *sizes, *SMALL]) == 0
    common = ["train", "--preset", "tiny", "--train", str(pairs), "--valid", str(pairs), "--steps", "6"]
    common += ["--evaluate-every", "3", "--bleu-sentences", "0"]
    common += ["--tokenizer", str(folder / "lm" / "tokenizer.model"), *SMALL]
    assert main([*common, "--output", str(folder / "scratch-10-1")]) == 0
    more = ["--encoder-from", str(folder / "lm"), "--output", str(folder / "pretrained-10-1")]
    assert main([*common, *more]) == 0
    return folder


def test_runs_in_pairs_are_compared(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "found.json"
    data = ["--data", str(runs / "pairs.tsv")]
    assert main(["pretraining", "--runs", str(runs), *data, "--output", str(output)]) == 0
    assert capsys.readouterr().out.startswith("10 % of the pairs, seed 1: ")
    (found,) = json.loads(output.read_text())["compared"]
    assert (found["percent"], found["seed"]) == (10, 1)
    assert [step for step, _ in found["curves"]["scratch"]] == [3, 6]
    assert found["curves"]["scratch"] != found["curves"]["pretrained"]
    gap = found["models"]["pretrained"]["loss"]["difference"]
    assert gap["low"] <= gap["value"] <= gap["high"]


def test_a_folder_without_runs_is_said_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "pairs.tsv"
    data.write_text("a\tb\n", "utf-8")
    options = ["--runs", str(tmp_path), "--data", str(data), "--output", str(tmp_path / "no.json")]
    assert main(["pretraining", *options]) == 2
    assert "holds no runs named" in capsys.readouterr().err


def test_a_translator_is_no_language_model(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = str(runs / "pairs.tsv")
    options = ["--train", pairs, "--valid", pairs, "--output", str(runs / "no"), "--preset", "tiny"]
    options += ["--tokenizer", str(runs / "lm" / "tokenizer.model"), "--device", "cpu"]
    assert main(["train", *options, "--encoder-from", str(runs / "scratch-10-1")]) == 2
    assert "needs one" in capsys.readouterr().err
