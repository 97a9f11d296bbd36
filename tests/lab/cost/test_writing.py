"""One pass, a cache and computing again give the same tokens of a language model."""

from __future__ import annotations

import torch

from lab.cost.writing import WAYS, measure_writing
from tests.support.random_models import random_ids, random_language_model


def test_all_ways_predict_the_same_tokens() -> None:
    model, ids = random_language_model(), random_ids(1, 12)
    first, *others = (way(model, ids) for way in WAYS.values())
    assert first.shape == (12,)
    assert all(torch.equal(first, other) for other in others)


def test_lengths_beyond_the_model_are_left_out() -> None:
    found = measure_writing(random_language_model(max_positions=8), (2, 4, 8, 16), 1)
    assert found["lengths"] == [2, 4, 8]
    assert set(found["ways"]) == set(WAYS)
    assert all(len(way["medians"]) == 3 and way["time"] for way in found["ways"].values())
