from __future__ import annotations

import pytest
import torch
from random_models import random_recurrent

from lab.recurrent import speed
from transformer.runs.translator import Translator


@pytest.fixture
def twins(tokenizer, translator, monkeypatch):
    monkeypatch.setattr(speed, "POSITIONS", 16)
    model = random_recurrent("dot", vocab_size=tokenizer.vocab_size)
    return {"dot": Translator(model, tokenizer, name="dot"), "sinusoidal": translator}


def test_ratios_are_to_the_reference_at_the_same_length(twins):
    found = speed.measure_speed(twins, "sinusoidal", (2, 4), 1)
    for kind in ("training", "writing"):
        own, other = found[kind]["dot"], found[kind]["sinusoidal"]
        assert other["ratio"] == [1.0, 1.0]
        for ratio, a, b in zip(own["ratio"], own["best"], other["best"], strict=True):
            assert ratio == pytest.approx(a / b, rel=0.01)


def test_a_training_step_leaves_the_model_as_it_was(twins):
    model = twins["dot"].model
    before = [parameter.clone() for parameter in model.parameters()]
    speed.training_step(model, 4)()
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_every_length_trains_on_as_many_tokens(monkeypatch):
    monkeypatch.setattr(speed, "POSITIONS", 64)
    assert [speed.rows(length) * length for length in (8, 16, 64)] == [64, 64, 64]
    assert speed.rows(100) == 1
