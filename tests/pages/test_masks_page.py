"""The page of masks without a browser: a known mask, what leaks, and a batch with its padding."""

import json
import re

import numpy as np
import pytest
from app_pages import array, run, words
from closed_form import CASES

PAGE = "pages/masks.py"


def drawn(at: object, words: str) -> dict:
    """The figure whose alternative text holds some words."""
    charts = (each.proto for each in at.get("plotly_chart"))  # type: ignore[attr-defined]
    return json.loads(next(each.spec for each in charts if words in each.alt))


@pytest.mark.parametrize("name", CASES)
def test_the_zeros_of_a_known_causal_mask_are_counted(name: str):
    at = run(PAGE, model=name, text=CASES[name].sentence)
    size = len(CASES[name].target_tokens)
    masked = size * (size - 1) // 2
    assert f"{masked} of {size * size} cells are masked" in words(at)
    zeros = re.search(rf"(\d+) of {size * size} weights are exactly 0", words(at))
    assert zeros is not None
    assert int(zeros[1]) >= masked
    assert "every row sums to 1" in words(at)


@pytest.mark.parametrize("name", CASES)
def test_a_score_of_zero_leaks_and_the_last_row_says_how_much(name: str):
    at = run(PAGE, model=name, text=CASES[name].sentence, mask="zero", decoder="1.1")
    assert "Every row still sums to 1" in words(at)
    what_if, true = drawn(at, "What if: 0 before the softmax"), drawn(at, "Weights, after mask and softmax")
    size = len(CASES[name].target_tokens)
    later = ~np.tri(size, dtype=bool)
    weights, own = (array(each["data"][0]["customdata"])[..., 0] for each in (what_if, true))
    assert weights[0, 1:] == pytest.approx(weights[0, 1])
    assert weights[0, 1] > 0
    assert weights.sum(-1) == pytest.approx(1, abs=1e-5)
    assert (own[later] == 0).all()
    keys = CASES[name].keys("decoder", 0)
    assert all(own[row, key] > 0.99 for row, key in enumerate(keys))
