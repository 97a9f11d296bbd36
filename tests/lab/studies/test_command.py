"""`python -m lab hard-attention`: a short run, and the curves that ship with the app."""

from __future__ import annotations

import statistics
from pathlib import Path

from programs import main

from lab.studies import hard_attention
from transformer.storage.files import read_json

SHIPPED = Path(__file__).resolve().parents[3] / "assets" / "models" / "recurrent" / "hard_attention.json"


def test_the_file_holds_a_curve_of_every_quantity_for_each_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(hard_attention, "ESTIMATES", 2)
    file = tmp_path / "hard.json"
    asked = ["hard-attention", "--steps", "4", "--every", "3", "--seeds", "2", "--output", str(file)]
    assert main([*asked, "--task", "copy"]) == 0
    found = read_json(file)
    assert found["task"] == "copy"
    for method, curves in found["methods"].items():
        assert curves["steps"] == [0, 3, 4]
        assert ("without" in curves) == (method == "hard")
        runs = [each for name, each in curves.items() if name != "steps"]
        assert all(len(run) == 3 for each in runs for run in each)
        assert all(len(each) == 2 for each in runs)


def test_in_the_shipped_curves_hard_attention_learns_later_and_its_gradient_varies_more():
    soft, hard = (read_json(SHIPPED)["methods"][name] for name in ("soft", "hard"))
    assert all(min(values) >= 0 for values in soft["variance"])
    middle = len(soft["steps"]) // 2
    for quantity, sign in (("exact", -1), ("loss", 1), ("variance", 1)):
        means = [statistics.fmean(run[middle] for run in each[quantity]) for each in (soft, hard)]
        assert sign * (means[1] - means[0]) > 0, quantity
