"""`python -m lab cost`: a small measurement, and the file that ships with the app."""

from __future__ import annotations

from pathlib import Path

import torch
from programs import main

from lab.cost.decoding import LENGTHS
from lab.cost.table import LAYERS, WRITTEN
from transformer.storage.files import read_json

SHIPPED = Path(__file__).resolve().parents[3] / "assets" / "cost.json"


def test_the_file_holds_every_kind_width_and_length_and_says_where_it_was_measured(
    closed_form_models: dict[str, Path], tmp_path: Path
) -> None:
    file, threads = tmp_path / "cost.json", torch.get_num_threads()
    asked = ["cost", "--model", str(closed_form_models["copy"]), "--output", str(file), "--repeats", "1"]
    assert main([*asked, "--widths", "16", "8", "--lengths", "32", "8", "16"]) == 0
    found = read_json(file)
    assert list(found["widths"]) == ["8", "16"]
    assert found["lengths"] == [8, 16, 32]
    assert torch.get_num_threads() == threads
    assert found["machine"]["torch"] == torch.__version__
    assert found["machine"]["threads"] == 1
    for kinds in found["widths"].values():
        assert set(kinds) == {*LAYERS, WRITTEN}
        assert all(len(each["milliseconds"]) == 3 for each in kinds.values())
    assert set(found["decoding"]["ways"]) == {"parallel", "cached", "again"}


def test_the_shipped_file_shows_that_attention_is_quadratic_and_the_others_are_not() -> None:
    found = read_json(SHIPPED)
    assert found["decoding"]["lengths"] == list(LENGTHS)
    widest = found["widths"][max(found["widths"], key=int)]
    assert widest[WRITTEN]["memory"]["value"] > 1.8
    for width in found["widths"].values():
        assert width["attention"]["time"]["low"] > width["recurrent"]["time"]["high"]
    for kind in ("recurrent", "convolutional", "restricted"):
        assert 0.7 < widest[kind]["time"]["value"] < 1.2
        assert widest[kind]["time"]["high"] - widest[kind]["time"]["low"] < 0.5
