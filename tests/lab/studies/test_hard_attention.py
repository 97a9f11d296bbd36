from __future__ import annotations

import random

import pytest
import torch
from torch.nn import functional as F

from lab.studies import hard_attention
from lab.studies.hard_attention import (
    Choosing,
    Learner,
    Texts,
    gradient,
    reinforced,
    small_model,
    soft_loss,
    texts,
    token_losses,
    variance,
)
from transformer.model.scores import attention_weights
from transformer.model.watching.observer import Attended, AttentionInputs, Bystander


class Fixed(Bystander):
    """Every query reads one given position; keeps the weights that it would have been drawn with."""

    def __init__(self, position: int) -> None:
        self._position = position

    def attention(self, asked: AttentionInputs) -> Attended:
        self.weights = attention_weights(asked.scores(), asked.visible())[:, 0]
        queries = asked.query.shape[2]
        return Attended(asked.value[:, :, self._position : self._position + 1].expand(-1, -1, queries, -1))


def expected_loss(model, given, losses_learn=True):
    """The mean loss of a token over all positions that could be drawn, each with its probability.

    If the losses do not learn, gradients go through the probabilities of the draw alone.
    """
    total = 0 * sum(each.sum() for each in model.parameters())
    for position in range(given.source.shape[1]):
        fixed = Fixed(position)
        losses = token_losses(model, given, fixed)
        total = total + (fixed.weights[..., position] * (losses if losses_learn else losses.detach())).sum()
    return total / given.counted.sum()


@pytest.mark.parametrize("usual", [0.0, -2.0])
def test_the_estimate_is_right_on_average_with_a_baseline_and_without(usual):
    model, given = small_model(1), texts("reverse", random.Random(1), count=6, longest=3)
    exact = gradient(model, expected_loss(model, given))
    many = Texts(*(each.repeat(800, 1) for each in (given.source, given.read, given.wanted)))
    mean = gradient(model, reinforced(model, many, torch.Generator().manual_seed(1), usual)[0])
    assert F.cosine_similarity(mean, exact, dim=0) > 0.97
    assert float(mean.norm() / exact.norm()) == pytest.approx(1, abs=0.1)
    losses = token_losses(model, many, Choosing(torch.Generator().manual_seed(1))).sum() / many.counted.sum()
    draws = mean - gradient(model, losses + 0 * expected_loss(model, given))  # what the draw alone teaches
    alone = gradient(model, expected_loss(model, given, losses_learn=False))
    assert float(draws @ alone / (alone @ alone)) == pytest.approx(1, abs=0.15 if usual else 0.6)
    assert F.cosine_similarity(draws, alone, dim=0) > (0.93 if usual else 0.7)


def test_the_reward_is_the_log_probability_of_the_tokens():
    model, given = small_model(1), texts("copy", random.Random(1), count=4)
    _, reward = reinforced(model, given, torch.Generator().manual_seed(1), 0.0)
    losses = token_losses(model, given, Choosing(torch.Generator().manual_seed(1)))
    assert reward == pytest.approx(-float(losses.detach().sum() / given.counted.sum()))


def test_hard_attention_reads_one_position_alone():
    class Kept(Choosing):
        def attention(self, asked):
            found = super().attention(asked)
            self.asked, self.output = asked, found.output
            return found

    observer = Kept(torch.Generator().manual_seed(2))
    token_losses(small_model(1), texts("copy", random.Random(2), count=3), observer)
    for value, output in zip(observer.asked.value[:, 0], observer.output[:, 0], strict=True):
        assert all((value == row).all(-1).any() for row in output)


def test_padding_is_never_drawn():
    given = texts("copy", random.Random(3), count=16)
    observer = Choosing(torch.Generator().manual_seed(3))
    token_losses(small_model(1), given, observer)
    assert bool((observer.log_probs > -50).all())


def test_the_task_is_spelled_backwards():
    given = texts("reverse", random.Random(1), count=1)
    letters = given.source[0][given.source[0] > 3].tolist()
    assert given.wanted[0][given.wanted[0] > 3].tolist() == letters[::-1]
    assert given.read[0].tolist()[1:] == given.wanted[0].tolist()[:-1]


def test_soft_attention_has_no_variance_if_the_batch_stays_the_same():
    model, given = small_model(1), texts("copy", random.Random(1))
    assert variance(gradient(model, soft_loss(model, given)) for _ in range(3)) == pytest.approx(0)


@pytest.mark.parametrize("method", ["soft", "hard"])
def test_both_learn_and_measure_what_they_say(method, monkeypatch):
    monkeypatch.setattr(hard_attention, "ESTIMATES", 3)
    found = Learner(method, "reverse", 1).learn(60, 30)
    assert found["steps"] == [0, 30, 60]
    assert found["loss"][-1] < found["loss"][0]
    assert all(0 <= share <= 1 for share in found["exact"])
    assert len(found.get("without", ())) == (3 if method == "hard" else 0)
    assert (max(found["drawn"]) > 0) == (method == "hard")
