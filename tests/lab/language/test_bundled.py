"""The bundled language model: its size, and what its files say of its weights."""

from __future__ import annotations

from pathlib import Path

from transformer.storage.description import LANGUAGE_FILE, WEIGHTS_FILE
from transformer.storage.marks import MEASURED, marks

DIRECTORY = Path(__file__).resolve().parents[3] / "assets" / "models" / "language" / "lm-en"
MOST_BYTES = 5 * 10**6


def test_the_model_is_small_and_its_files_name_its_weights() -> None:
    assert (DIRECTORY / WEIGHTS_FILE).stat().st_size <= MOST_BYTES
    assert (DIRECTORY / LANGUAGE_FILE).stat().st_size <= 10**6
    assert LANGUAGE_FILE in MEASURED
    assert marks(DIRECTORY) == {LANGUAGE_FILE: True, "README.md": True}
