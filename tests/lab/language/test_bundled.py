"""The bundled language model: its size, and the numbers of its card, which are those of language.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from transformer.storage.description import LANGUAGE_FILE, WEIGHTS_FILE, read_card
from transformer.storage.marks import MEASURED, marks, measured

DIRECTORY = Path(__file__).resolve().parents[3] / "assets" / "models" / "language" / "lm-en"
MOST_BYTES = 5 * 10**6


@pytest.fixture(scope="module")
def study() -> dict[str, Any]:
    found = measured(DIRECTORY, LANGUAGE_FILE)
    assert found is not None
    return found


def shown(cell: dict[str, float]) -> str:
    return f"{cell['value']:.1f} [{cell['low']:.1f}, {cell['high']:.1f}]"


def test_the_model_is_small_and_its_files_name_its_weights() -> None:
    assert (DIRECTORY / WEIGHTS_FILE).stat().st_size <= MOST_BYTES
    assert (DIRECTORY / LANGUAGE_FILE).stat().st_size <= 10**6
    assert LANGUAGE_FILE in MEASURED
    assert marks(DIRECTORY) == {LANGUAGE_FILE: True, "README.md": True}


def test_the_card_has_the_perplexities_and_accuracies_of_the_file(study: dict[str, Any]) -> None:
    card = read_card(DIRECTORY)
    for each in study["perplexity"]["files"].values():
        for unit in ("per_word", "per_piece"):
            for model in each[unit].values():
                assert shown(model["value"]) in card
    for case, each in study["agreement"]["models"]["language model"].items():
        assert f"| {study['agreement']['told'][case]} | {each['pairs']:,} |" in card
        assert f"{100 * each['accuracy']['value']:.1f} %" in card


def test_the_model_is_better_than_the_n_gram_model_beside_it(study: dict[str, Any]) -> None:
    for each in study["perplexity"]["files"].values():
        assert each["per_word"]["language model"]["difference"]["high"] < 0
