"""`language`: everything about a language model is measured and written beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs import main

from transformer.storage.description import LANGUAGE_FILE, model_digests
from transformer.storage.marks import measured
from transformer.text.pairs import read_pairs

LINES = [pair.source for pair in read_pairs("assets/sample/tatoeba-en-de.tsv.gz")]
PARTS = ["induction", "words"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts, and a trained model with snapshots."""
    path = tmp_path_factory.mktemp("language")
    (path / "text.txt").write_text("\n".join(LINES), "utf-8")
    (path / "held.txt").write_text("\n".join(LINES[::20]), "utf-8")
    text = ["--text", str(path / "text.txt"), "--valid", str(path / "held.txt")]
    sizes = ["--preset", "lm-tiny", "--vocab-size", "1000", "--smaller-vocabulary", "--device", "cpu"]
    run = ["--steps", "4", "--snapshots", "3", "--row-length", "32", "--output", str(path / "lm")]
    assert main(["train-lm", *text, *sizes, *run]) == 0
    return path


def study(folder: Path, *more: str) -> int:
    model = ["--model", str(folder / "lm"), "--snapshots", str(folder / "lm")]
    files = ["--text", str(folder / "text.txt"), "--heldout", str(folder / "held.txt")]
    return main(["language", *model, *files, *more])


def test_one_command_measures_everything_and_says_on_which_model(folder: Path) -> None:
    assert study(folder, "--least", "3") == 0
    values = measured(folder / "lm", LANGUAGE_FILE)
    assert values is not None
    assert values["digests"] == model_digests(folder / "lm")
    assert [name for name in PARTS if {"date", "command"} <= set(values[name])] == PARTS
    assert values["words"]["steps"][-1] == 4
    assert (folder / "lm" / LANGUAGE_FILE).stat().st_size <= 10**6


def test_one_part_is_measured_again_and_the_others_stay(folder: Path) -> None:
    path = folder / "lm" / LANGUAGE_FILE
    path.write_text(json.dumps({"digests": model_digests(folder / "lm"), "words": {"date": "before"}}))
    assert study(folder, "--only", "induction") == 0
    values = json.loads(path.read_text())
    assert values["words"] == {"date": "before"}
    assert values["induction"]["length"] == 25


def test_only_the_files_that_a_part_reads_are_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ["language", "--model", str(folder / "lm"), "--only"]
    assert main([*model, "induction", "--heldout", str(folder / "held.txt")]) == 0
    assert "induction" in json.loads((folder / "lm" / LANGUAGE_FILE).read_text())
    assert main([*model, "induction", "words"]) == 2
    assert "Give --heldout, --text, --snapshots too" in capsys.readouterr().err


def test_without_snapshots_there_is_no_map(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = folder / "empty"
    empty.mkdir()
    assert study(folder, "--only", "words", "--snapshots", str(empty)) == 2
    assert "has no snapshots" in capsys.readouterr().err
