"""`generate` and `perplexity` with the bundled language model."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from programs import main

from transformer import load_language_model

MODEL = str(Path(__file__).parents[3] / "assets" / "models" / "language" / "lm-en")


def test_generate_says_in_json_what_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    sample = ["--sample", "--top-p", "0.9", "--temperature", "0.5", "--seed", "3", "--max-length", "12"]
    assert main(["generate", "--model", MODEL, "--json", *sample, "The old house"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["prompt"] == "The old house"
    assert "".join(found["tokens"][: found["given"]]) == "▁The▁old▁house"
    assert len(found["log_probs"]) == len(found["tokens"]) <= 12


def test_perplexity_is_that_of_the_model_and_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["The old house is not for sale.", "She reads."]
    data, output = tmp_path / "texts.txt", tmp_path / "found.json"
    data.write_text("\n".join(texts), encoding="utf-8")
    assert main(["perplexity", "--model", MODEL, "--data", str(data), "--output", str(output)]) == 0
    assert "perplexity per word" in capsys.readouterr().out
    found = json.loads(output.read_text())["data"][str(data)]
    model = load_language_model(MODEL)
    total = sum(sum(model.force(text).log_probs) for text in texts)
    assert (found["texts"], found["words"]) == (2, 9)
    assert found["per_word"] == pytest.approx(math.exp(-total / 11), rel=1e-4)
    assert found["per_piece"] == pytest.approx(math.exp(-total / (found["pieces"] + 2)), rel=1e-4)
