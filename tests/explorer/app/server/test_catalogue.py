"""Which directories are offered as models."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from explorer.app.server import catalogue, models
from transformer.devices import VARIABLE


def test_a_directory_whose_name_no_address_can_carry_is_not_offered(
    closed_form_models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    names = ["mine", "imported: fake (abcdef)", "two\nlines", os.fsdecode(b"bytes \xff")]
    for name in names:
        shutil.copytree(closed_form_models["copy"], tmp_path / name)
    assert [name for name in catalogue.available() if name in names] == ["mine"]


@pytest.mark.parametrize(
    ("device", "says"),
    [
        ("", "mine runs on the CPU."),
        ("cuda", "mine runs on a GPU, if there is one."),
        ("tpu", "The device 'tpu' is unknown; choose auto, cpu or cuda."),
    ],
)
def test_a_model_says_where_it_runs_before_and_after_it_is_loaded(
    device: str,
    says: str,
    closed_form_models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(closed_form_models["copy"], tmp_path / "mine")
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    monkeypatch.setenv(VARIABLE, device)
    found = models.handle("mine")
    assert found.runs == says
    if not device:
        found.load()
        assert found.resident
        assert found.runs == says


def test_a_language_model_among_the_twins_is_no_translator(
    closed_form_models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    for name in (
        "positions/mine",
        "positions/writer",
        "recurrent/writer",
        "language/mine",
        "language/writer",
    ):
        shutil.copytree(closed_form_models["copy"], tmp_path / name)
        if name.endswith("writer"):
            (tmp_path / name / "config.json").write_text('{"architecture": "language_model"}')
    assert [name for name, path in catalogue.available().items() if tmp_path in path.parents] == [
        "positions/mine"
    ]
    own = [name for name, path in catalogue.language_models().items() if tmp_path in path.parents]
    assert own == ["language/writer"]
