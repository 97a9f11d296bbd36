"""The sentences of the page Training, on lessons made by hand."""

from __future__ import annotations

import re

import pytest
import torch

from explorer.app.controls.text import power
from explorer.app.sections.training.lesson import losses, parted
from explorer.app.sections.training.loss import sentence as smoothed
from explorer.app.sections.training.schedule import own_schedule, paper_schedule
from explorer.lenses.targets.lesson import Position, TrainingView
from explorer.lenses.targets.smoothing import SmoothedPiece, SmoothedPosition
from transformer.training.options import TrainingOptions, learning_rate


def lesson(target: str, free: str) -> TrainingView:
    """A lesson over letters; each letter is its own id."""
    positions = tuple(
        Position("<s>", f"▁{letter}", ord(letter), 0.5 * i, f"▁{letter}", 0.9)
        for i, letter in enumerate(target)
    )
    free_tokens = tuple(f"▁{letter}" for letter in free)
    return TrainingView(positions, torch.zeros(len(target), 2), free_tokens, tuple(map(ord, free)))


def one(share: float, epsilon: float) -> SmoothedPosition:
    """A position of a vocabulary of 100 pieces whose right one has this probability."""
    target = 1 - epsilon + epsilon / 100
    rest = SmoothedPiece("", 1 - share, 1 - target, 0.0)
    return SmoothedPosition(epsilon, 100, 1.0, 0.5, 4.0, (SmoothedPiece("▁a", share, target, 1.0),), 0, rest)


def test_the_position_that_costs_most_is_named():
    assert "position 3, “c”, costs most: 1.00 nats" in losses(lesson("abc", "abc"))


def test_a_target_of_one_token_has_no_position_that_costs_most():
    assert losses(lesson("a", "a")).startswith("The only position, “a”")


def test_the_parting_names_what_each_of_both_has():
    said = parted(lesson("axc", "abc"))
    assert "**step 2**" in said
    assert "the model writes “b”, the target has “x”" in said


@pytest.mark.parametrize(
    ("target", "free", "ended"), [("ab", "abc", "the target has ended"), ("abc", "ab", "its own has ended")]
)
def test_if_one_of_both_has_ended_the_sentence_says_which(target: str, free: str, ended: str):
    said = parted(lesson(target, free))
    assert ended in said
    assert "step 3" in said


def test_a_model_surer_than_the_target_is_pulled_down_and_any_other_is_pulled_up():
    position = lesson("a", "a").positions[0]
    assert "*lowers*" in smoothed(position, 0, one(0.97, 0.1))
    assert "raises" in smoothed(position, 0, one(0.5, 0.1))


@pytest.mark.parametrize("schedule", ["constant", "linear", "inverse_sqrt"])
def test_the_peak_and_the_steps_of_every_schedule_are_said(schedule: str):
    own = TrainingOptions(steps=5_000, warmup=300, decay_steps=1_000, schedule=schedule, learning_rate=0.5)
    said = own_schedule("model", own, 64)
    assert power(learning_rate(own, 300, 64)) in said
    assert re.search(r"5,000 steps.* by step 300", said)
    assert ("4,000" in said) == (schedule == "constant")


def test_the_peak_is_half_as_high_four_warm_ups_later():
    assert "at step 1,600, four times as late, it is 50\u00a0% of the peak" in paper_schedule(
        TrainingOptions(schedule="inverse_sqrt", learning_rate=1.0, warmup=400), 128
    )
