"""The section on pretraining: what the runs gave, in a sentence, a table and curves."""

from __future__ import annotations

from typing import Any

import pytest
from app_pages import charts, run, words

from ui.server import measured
from ui.views.language_model.study import pretraining

PAGE = "pages/language_model.py"


def cell(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 1, "high": value + 1}


def compared(percent: int, seed: int, gain: float) -> dict[str, Any]:
    models = {
        "scratch": {"bleu": {"value": cell(10.0)}},
        "pretrained": {
            "bleu": {"value": cell(10.0 + gain), "difference": cell(gain)},
            "loss": {"value": cell(3.0), "difference": cell(-gain / 10)},
        },
    }
    curves = {how: [[100, 4.0], [200, 3.0 + number]] for number, how in enumerate(models)}
    return {"percent": percent, "seed": seed, "models": models, "curves": curves}


FOUND = {
    "date": "2026-11-22",
    "sentences": 2000,
    "compared": [compared(1, 1, 1.0), compared(1, 2, 3.0), compared(10, 1, -0.5)],
}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measured, "shipped", lambda name: FOUND)
    return run(PAGE, view="pretraining")


def test_the_sentence_has_the_mean_gain_of_each_share(opened):
    assert "**+2.0 BLEU** with 1 % of the pairs (loss −0.20 nats) and **−0.5 BLEU** with 10 %" in words(
        opened
    )


def test_the_table_has_a_row_for_each_two_runs(opened):
    assert "| 1 % | 2 | 10.0 | 13.0 | +3.0 (+2.0 to +4.0) | −0.30 (−1.30 to +0.70) |" in words(opened)
    assert "| 10 % | 1 | 10.0 | 9.5 | −0.5 (−1.5 to +0.5) | +0.05 (−0.95 to +1.05) |" in words(opened)


def test_every_run_is_a_line_in_the_panel_of_its_share(opened):
    (chart,) = charts(opened)
    lines = [(each["name"], each["yaxis"]) for each in chart["data"]]
    names = list(pretraining.BEGUN.values())
    assert lines == [*((name, "y") for name in names * 2), *((name, "y2") for name in names)]


def test_without_results_the_section_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measured, "shipped", lambda name: None)
    at = run(PAGE, view="pretraining")
    assert any("python -m lab pretraining" in each.value for each in at.info)


def test_the_shipped_runs_come_in_pairs_with_two_seeds():
    found = measured.shipped(measured.PRETRAINING)
    assert found is not None
    runs = {(each["percent"], each["seed"]) for each in found["compared"]}
    assert runs == {(percent, seed) for percent in (1, 10, 100) for seed in (1, 2)}
    assert "BLEU" in pretraining.told(found)
