"""`python -m transformer familiarity` on a small model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from corpus import number_pairs, write_pairs

from transformer.__main__ import main
from transformer.lenses.familiarity import read_measure
from transformer.storage.directory import save_checkpoint
from transformer.translate.translator import Translator


@pytest.fixture
def model(translator: Translator, tmp_path: Path) -> Path:
    directory = tmp_path / "random"
    save_checkpoint(directory, translator.config, translator.model.state_dict(), translator.tokenizer)
    return directory


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Options with the four files: number words are known, long texts in other letters are not."""
    known, unknown = number_pairs(12), [("猫 " * 9, "x"), ("犬 " * 12, "y"), ("鳥 " * 10, "z")]
    pairs = {"known": known, "unknown": unknown, "known-test": known[6:], "unknown-test": unknown}
    return [
        part
        for name, each in pairs.items()
        for part in (f"--{name}", str(write_pairs(tmp_path / f"{name}.tsv", each)))
    ]


def test_the_command_writes_the_measure_and_says_both_shares(
    model: Path, files: list[str], capsys: pytest.CaptureFixture[str]
):
    instead = ["--instead", "some/model", "--instead-bytes", "1000000"]
    assert main(["familiarity", "--model", str(model), *files, *instead]) == 0
    said = capsys.readouterr().out
    measure = read_measure(model)
    assert measure is not None
    assert measure.flagged["unknown"] == 1
    assert "100.0 % of" in said
    assert (measure.instead, measure.instead_bytes) == ("some/model", 1_000_000)
    values = json.loads((model / "familiarity.json").read_text(encoding="utf-8"))
    assert "known: 12 texts" in values["data"]
    assert values["command"].startswith("python -m transformer familiarity --model")


def test_a_text_that_the_model_cannot_read_is_left_out(model: Path, files: list[str], tmp_path: Path):
    longer = write_pairs(tmp_path / "long.tsv", [("猫 " * 2000, "x"), ("犬 " * 9, "y"), ("鳥 " * 9, "z")])
    options = [str(longer) if part.endswith("unknown.tsv") else part for part in files]
    assert main(["familiarity", "--model", str(model), *options]) == 0


def test_a_name_on_the_hub_is_no_directory_to_write_into(
    files: list[str], capsys: pytest.CaptureFixture[str]
):
    assert main(["familiarity", "--model", "user/nothing", *files]) == 2
    assert "no directory user/nothing" in capsys.readouterr().err
