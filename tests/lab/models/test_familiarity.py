"""`python -m lab familiarity` on a small model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from corpus import number_pairs, write_pairs
from programs import main

from lenses.words.familiarity import JUDGED, read_measure
from transformer.runs.translator import Translator, load_translator
from transformer.storage.directory import save_checkpoint


@pytest.fixture
def model(translator: Translator, tmp_path: Path) -> Path:
    directory = tmp_path / "random"
    save_checkpoint(directory, translator.config, translator.model.state_dict(), translator.tokenizer)
    return directory


@pytest.fixture
def files(tmp_path: Path, model: Path) -> list[str]:
    """Options: half of the references are what the model writes, so that these translations are good."""
    written = load_translator(model)
    pairs = [
        (pair[0], written.translate(pair[0]).text if i % 2 else "猫" * 9)
        for i, pair in enumerate(number_pairs(12))
    ]
    judged = "".join(
        f"kind\t{a}\t{written.translate(a).text}\t{'yes' if i % 2 else 'no'}\n"
        for i, (a, _) in enumerate(pairs)
    )
    (tmp_path / "judged.tsv").write_text(judged, encoding="utf-8")
    paths = [str(write_pairs(tmp_path / f"{name}.tsv", pairs)) for name in ("fit", "test")]
    return ["--fit", paths[0], "--test", paths[1], "--judged", str(tmp_path / "judged.tsv")]


def test_the_command_writes_the_measure_and_says_what_it_finds(
    model: Path, files: list[str], capsys: pytest.CaptureFixture[str]
):
    instead = ["--instead", "some/model", "--instead-bytes", "1000000"]
    assert main(["familiarity", "--model", str(model), *files, *instead]) == 0
    said = capsys.readouterr().err
    measure = read_measure(model)
    assert measure is not None
    assert (measure.found[JUDGED].texts, measure.found[JUDGED].bad) == (12, 6)
    assert "of 12 translations" in said
    assert (measure.instead, measure.instead_bytes) == ("some/model", 1_000_000)
    values = json.loads((model / "familiarity.json").read_text(encoding="utf-8"))
    assert "12 texts of" in values["data"]
    assert values["command"].startswith("python -m lab familiarity --model")


def test_a_name_on_the_hub_is_no_directory_to_write_into(
    files: list[str], capsys: pytest.CaptureFixture[str]
):
    assert main(["familiarity", "--model", "user/nothing", *files]) == 2
    assert "no directory user/nothing" in capsys.readouterr().err
