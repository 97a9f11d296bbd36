from __future__ import annotations

import numpy as np
import pytest
import torch

from explorer.lenses.targets.lesson import lesson
from transformer.training.loss import projected_loss

TEXT = "one two three four"
OWN = "eins drei zwei"


def cross_entropy(translator, text, target):
    """In float64, one step after another: each prefix is a run of its own."""
    config = translator.config
    source = torch.tensor([[*translator.ids(text), config.eos_id]])
    losses = []
    for step, token in enumerate(target):
        prefix = torch.tensor([[config.bos_id, *target[:step]]])
        logits = translator.model(source, prefix)[0, -1].double().numpy()
        top = logits.max()
        losses.append(top + np.log(np.exp(logits - top).sum()) - logits[token])
    return losses


def target_of(translator, text):
    return (*translator.cut(text, "target").ids, translator.config.eos_id)


def test_the_losses_of_one_pass_are_those_of_every_prefix_on_its_own(translator):
    target = target_of(translator, OWN)
    shown = lesson(translator, TEXT, target)
    expected = cross_entropy(translator, TEXT, target)
    assert [each.loss for each in shown.positions] == pytest.approx(expected, abs=1e-5)
    assert shown.loss == pytest.approx(np.mean(expected), abs=1e-5)


def test_the_sum_of_the_losses_is_what_the_training_step_counts(translator):
    target = target_of(translator, OWN)
    shown = lesson(translator, TEXT, target)
    weight, bias = translator.model.projection
    counted = projected_loss(shown.features, weight, torch.tensor(target), 0.0, bias)
    assert float(counted) == pytest.approx(sum(each.loss for each in shown.positions), abs=1e-4)


def test_the_target_is_read_one_place_later_than_it_is_predicted(translator):
    shown = lesson(translator, TEXT, target_of(translator, OWN)).positions
    assert shown[0].read == "<s>"
    assert shown[-1].token == "</s>"
    assert [each.read for each in shown[1:]] == [each.token for each in shown[:-1]]


def test_both_predict_the_same_up_to_the_step_at_which_they_part(translator):
    shown = lesson(translator, TEXT, target_of(translator, OWN))
    parting = shown.parting
    assert parting is not None
    guesses = [each.guess for each in shown.positions[: parting + 1]]
    assert guesses == list(shown.free[: parting + 1])
    assert shown.positions[parting].token_id != shown.free_ids[parting]


def test_the_model_s_own_greedy_output_never_parts_from_itself(translator):
    ids = translator.translate(TEXT, beam_size=1).target_ids
    assert lesson(translator, TEXT, ids).parting is None


def test_a_target_that_ends_early_parts_where_it_ends(translator):
    ids = translator.translate(TEXT, beam_size=1).target_ids
    assert lesson(translator, TEXT, ids[:2]).parting == 2
