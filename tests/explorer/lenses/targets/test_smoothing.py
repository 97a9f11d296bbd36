from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from explorer.lenses.targets.lesson import lesson
from explorer.lenses.targets.smoothing import smoothed
from transformer import load_translator
from transformer.training.loss import projected_loss

TEXT = "one two three four"
SMOOTHINGS = (0.0, 0.1, 0.37, 0.9)


@pytest.fixture
def shown(translator):
    return lesson(
        translator, TEXT, (*translator.cut("eins drei zwei", "target").ids, translator.config.eos_id)
    )


def reference(translator, shown, position, epsilon):
    """The loss of PyTorch and its gradient with respect to the logits, in float64."""
    logits = translator.model.logits(shown.features[position]).double().cpu().detach().requires_grad_(True)
    right = torch.tensor(shown.positions[position].token_id)
    loss = F.cross_entropy(logits[None], right[None], label_smoothing=epsilon)
    loss.backward()
    return float(loss.detach()), logits.grad


@pytest.mark.parametrize("epsilon", SMOOTHINGS)
def test_loss_and_gradient_are_those_of_an_independent_cross_entropy(translator, shown, epsilon):
    for position in range(len(shown.positions)):
        loss, gradient = reference(translator, shown, position, epsilon)
        found = smoothed(translator, shown, position, epsilon)
        assert found.loss == pytest.approx(loss, abs=1e-5)
        for each in found.entries:
            (token_id,) = [i for i in range(len(gradient)) if translator.pieces([i])[0] == each.token]
            assert each.gradient == pytest.approx(float(gradient[token_id]), abs=1e-5)


def test_the_bias_of_a_marian_model_counts_too(original):
    translator = load_translator(original)
    pair = "one two", translator.force("one two", "eins zwei").target_ids
    shown = lesson(translator, *pair)
    assert [each.loss for each in shown.positions] == pytest.approx(
        [-each for each in translator.force(*pair).log_probs], abs=1e-5
    )
    for position in range(len(shown.positions)):
        loss, _ = reference(translator, shown, position, 0.1)
        assert smoothed(translator, shown, position, 0.1).loss == pytest.approx(loss, abs=1e-4)


def test_the_loss_is_the_weighted_sum_of_its_two_parts(translator, shown):
    for position, each in enumerate(shown.positions):
        found = smoothed(translator, shown, position, 0.1)
        assert found.bare_loss == pytest.approx(each.loss, abs=1e-6)
        assert found.loss == pytest.approx(0.9 * found.bare_loss + 0.1 * found.spread, abs=1e-5)


def test_the_gradient_is_the_one_that_the_training_step_sends_back(translator, shown):
    weight, bias = translator.model.projection
    features = shown.features[:1].clone().requires_grad_(True)
    right = torch.tensor([shown.positions[0].token_id])
    projected_loss(features, weight, right, 0.1, bias).backward()
    _, gradient = reference(translator, shown, 0, 0.1)
    torch.testing.assert_close(features.grad[0], gradient.float() @ weight, atol=1e-4, rtol=1e-4)


def test_everything_listed_and_the_rest_sum_to_one_and_the_gradient_to_nothing(translator, shown):
    found = smoothed(translator, shown, 1, 0.2)
    every = [*found.entries, found.rest]
    for name in ("share", "target", "bare"):
        assert sum(getattr(each, name) for each in every) == pytest.approx(1, abs=1e-5)
    assert sum(each.gradient for each in every) == pytest.approx(0, abs=1e-5)
    assert found.entries[found.right].bare == 1


def test_no_prediction_costs_less_than_the_entropy_of_the_target(translator, shown):
    found = smoothed(translator, shown, 0, 0.1)
    target = torch.full((found.pieces,), 0.1 / found.pieces, dtype=torch.float64)
    target[0] += 0.9
    assert found.floor == pytest.approx(float(torch.special.entr(target).sum()), abs=1e-9)
    assert found.loss >= found.floor
    assert smoothed(translator, shown, 0, 0.0).floor == 0


@pytest.mark.parametrize("epsilon", [-0.1, 1.0])
def test_a_smoothing_out_of_range_is_refused(translator, shown, epsilon):
    with pytest.raises(ValueError, match="from 0 to below 1"):
        smoothed(translator, shown, 0, epsilon)
