"""The page Training: its sentences and pictures, against the model, and bad addresses."""

from __future__ import annotations

import json
import math

import pytest
import torch
from app_pages import run, said, words
from streamlit.testing.v1 import AppTest

from transformer.model.config import TransformerConfig
from ui.server import catalogue

PAGE = "pages/training.py"
TEXT = "one two three"
OWN = "eins drei zwei"


def opened(**params: str) -> AppTest:
    at = run(PAGE, **{"model": "random", "text": TEXT, "target": OWN, **params})
    assert not at.exception
    return at


def charts(at: AppTest) -> list[dict]:
    return [json.loads(each.proto.spec) for each in at.get("plotly_chart")]


def bars(chart: dict) -> dict:
    return next(each for each in chart["data"] if each["type"] == "bar")


def log_probs() -> tuple[torch.Tensor, list[int]]:
    """(target, pieces) of the own translation, and its ids, from the plain forward pass."""
    model = catalogue.translator("random")
    config: TransformerConfig = model.config
    source = torch.tensor([[*model.ids(TEXT), config.eos_id]])
    target = [*model.target_ids(OWN), config.eos_id]
    logits = model.model(source, torch.tensor([[config.bos_id, *target[:-1]]]))[0]
    return logits.double().log_softmax(-1), target


# --- what it is shown ---------------------------------------------------------------------------------------


def test_the_bars_are_the_cross_entropies_of_the_positions():
    found, target = log_probs()
    expected = [-float(row[token]) for row, token in zip(found, target, strict=True)]
    drawn = bars(charts(opened())[0])
    assert drawn["y"] == pytest.approx(expected, abs=1e-5)
    assert drawn["customdata"] == list(range(len(target)))


def test_the_sentence_gives_the_mean_loss():
    found, target = log_probs()
    mean = -math.fsum(float(row[token]) for row, token in zip(found, target, strict=True)) / len(target)
    assert f"**{mean:.2f} nats** per token" in words(opened())


def test_the_page_says_where_both_ways_part():
    _, target = log_probs()
    free = catalogue.translator("random").translate(TEXT, 1).target_ids
    step = next(i for i, pair in enumerate(zip(target, free, strict=False)) if pair[0] != pair[1])
    assert f"**step {step + 1}**" in words(opened())


def test_the_model_s_own_output_never_parts():
    at = run(PAGE, model="random", text=TEXT)
    assert not at.exception
    assert "never part" in words(at)


def test_the_mask_hides_the_future():
    size = len(log_probs()[1])
    hidden = size * (size - 1) // 2
    assert f"hides {hidden} of the {size * size} cells" in words(opened())


def test_the_step_of_the_address_is_marked():
    colours = bars(charts(opened(step="2"))[0])["marker"]["color"]
    assert len(set(colours)) == 2
    assert colours.count(colours[1]) == 1


def test_a_long_target_has_a_window():
    at = opened(target=" ".join(["eins zwei"] * 30), first="5")
    assert any(each.label.startswith("First of the 40 positions") for each in at.slider)
    assert bars(charts(at)[0])["customdata"][0] == 4


def test_changes_do_not_hold_here_and_the_page_says_so():
    at = opened(changes="ablate_cross_1.1_zero")
    assert "without them" in words(at)
    assert bars(charts(at)[0])["y"] == bars(charts(opened())[0])["y"]


@pytest.mark.parametrize("params", [{"view": "x"}, {"first": "nan"}, {"step": "x"}], ids=str)
def test_a_bad_value_in_the_address_is_named_in_one_sentence(params: dict[str, str]):
    at = opened(**params)
    (name,) = params
    assert name.replace("_", "\\_") in said(at)
    assert charts(at)
