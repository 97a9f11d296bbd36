"""Which directories are offered as models."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ui.server import catalogue


def test_a_directory_whose_name_no_address_can_carry_is_not_offered(
    closed_form_models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    names = ["mine", "imported: fake (abcdef)", "two\nlines", os.fsdecode(b"bytes \xff")]
    for name in names:
        shutil.copytree(closed_form_models["copy"], tmp_path / name)
    assert [name for name in catalogue.available() if name in names] == ["mine"]
