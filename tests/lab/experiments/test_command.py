"""`python -m lab backups` on a small model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from closed_form import CASES
from corpus import write_pairs
from programs import main

from lab.backups.backup_heads import backup_heads
from lab.backups.pair_effects import from_json, pair_effects
from transformer.model.sites import AttentionKind
from transformer.runs.translator import load_translator
from transformer.storage.description import BACKUPS_FILE, model_digests
from transformer.storage.files import read_json
from transformer.storage.marks import measured

CASE = CASES["copy"]


@pytest.fixture
def directory(closed_form_models: dict[str, Path], tmp_path: Path) -> Path:
    found = tmp_path / "model"
    found.mkdir()
    for path in closed_form_models["copy"].iterdir():
        (found / path.name).write_bytes(path.read_bytes())
    return found


def test_the_file_holds_every_kind_as_measured_and_bears_the_hash_of_the_model(
    directory: Path, tmp_path: Path
):
    pairs = [(CASE.sentence, CASE.translation), ("one two", "eins zwei"), ("left out", "…")]
    write_pairs(tmp_path / "pairs.tsv.gz", pairs)
    asked = ["backups", "--model", str(directory), "--data", str(tmp_path / "pairs.tsv.gz")]
    assert main([*asked, "--sentences", "2"]) == 0
    values = read_json(directory / BACKUPS_FILE)
    assert values["digests"] == model_digests(directory)
    assert values["command"].endswith("--sentences 2")
    translator = load_translator(directory)
    for kind in AttentionKind:
        found = from_json(kind, values["kinds"][kind])
        *_, last = backup_heads(translator, [text for text, _ in pairs[:2]], kind, by="zero")
        here = pair_effects(last)
        assert (found.by, found.sentences, found.heads) == ("zero", 2, here.heads)
        np.testing.assert_allclose(found.joint, here.joint, atol=1e-5)


def test_a_file_of_another_model_says_nothing(directory: Path):
    (directory / BACKUPS_FILE).write_text('{"digests": {}, "kinds": {}}', encoding="utf-8")
    assert measured(directory, BACKUPS_FILE) is None
    (directory / BACKUPS_FILE).unlink()
    assert measured(directory, BACKUPS_FILE) is None
