"""A pair as training shows it, its smoothed losses, and the filters of a sampler, each beside plain torch."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from explorer.lenses.targets.filters import filtered_steps
from explorer.lenses.targets.lesson import lesson, smoothed
from transformer import Sampling, load_translator
from transformer import interventions as do
from transformer.training.loss import projected_loss

TEXT = "one two three four"


@pytest.fixture(scope="module")
def target(translator):
    return (*translator.cut("eins drei zwei", "target").ids, translator.config.eos_id)


@pytest.fixture(scope="module")
def view(translator, target):
    return lesson(translator, TEXT, target)


@pytest.fixture(scope="module")
def greedy(translator):
    return translator.translate(TEXT, beam_size=1).target_ids


def test_one_pass_gives_the_losses_and_guesses_of_every_prefix_on_its_own(translator, target, view):
    config = translator.config
    source = torch.tensor([[*translator.ids(TEXT), config.eos_id]])
    rows = [
        translator.model(source, torch.tensor([[config.bos_id, *target[:step]]]))[0, -1].double().softmax(-1)
        for step in range(len(target))
    ]
    losses = [-float(row[token].log()) for row, token in zip(rows, target, strict=True)]
    assert [each.loss for each in view.positions] == pytest.approx(losses, abs=1e-5)
    assert view.loss == pytest.approx(np.mean(losses), abs=1e-5)
    assert [each.share for each in view.positions] == pytest.approx(
        [float(row.max()) for row in rows], abs=1e-5
    )
    words = [(each.read, each.token, each.token_id, each.guess) for each in view.positions]
    pieces = [*translator.pieces(target)]
    guesses = translator.pieces([int(row.argmax()) for row in rows])
    assert words == [*zip(["<s>", *pieces[:-1]], pieces, target, guesses, strict=True)]
    weight, bias = translator.model.projection
    counted = projected_loss(view.features, weight, torch.tensor(target), 0.0, bias)
    assert float(counted) == pytest.approx(sum(losses), abs=1e-4)


def test_the_greedy_output_parts_from_a_target_where_they_first_differ_or_one_ends(translator, greedy, view):
    assert (view.free_ids, view.free) == (greedy, translator.pieces(greedy))
    step = view.parting
    assert step is not None
    assert [each.guess for each in view.positions[: step + 1]] == list(view.free[: step + 1])
    assert view.positions[step].token_id != view.free_ids[step]
    other = (greedy[0], greedy[1] + 1, *greedy[2:])
    parts = [lesson(translator, TEXT, ids).parting for ids in (greedy, greedy[:2], (*greedy, 5), other)]
    assert parts == [None, 2, len(greedy), 1]


# --- smoothed targets ---------------------------------------------------------------------------------------


def reference(translator, view, position, epsilon):
    """The loss of PyTorch and its gradient with respect to the logits, in float64."""
    logits = translator.model.logits(view.features[position]).double().cpu().detach().requires_grad_(True)
    right = torch.tensor(view.positions[position].token_id)
    loss = F.cross_entropy(logits[None], right[None], label_smoothing=epsilon)
    loss.backward()
    return float(loss.detach()), logits.grad, logits.detach().log_softmax(-1)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.37, 0.9])
def test_loss_parts_and_gradient_are_those_of_an_independent_cross_entropy(translator, view, epsilon):
    for position, each in enumerate(view.positions):
        loss, gradient, log_probs = reference(translator, view, position, epsilon)
        found = smoothed(translator, view, position, epsilon)
        assert (found.epsilon, found.pieces) == (epsilon, translator.config.vocab_size)
        expected = (loss, each.loss, -float(log_probs.mean()))
        assert (found.loss, found.bare_loss, found.spread) == pytest.approx(expected, abs=1e-5)
        best = log_probs.topk(8).indices.tolist()
        ids = best if each.token_id in best else [*best[:-1], each.token_id]
        assert found.right == ids.index(each.token_id)
        assert [one.token for one in found.entries] == list(translator.pieces(ids))
        shares = log_probs.exp()[ids]
        bare = [float(i == each.token_id) for i in ids]
        assert [one.share for one in found.entries] == pytest.approx(shares.tolist(), abs=1e-5)
        assert [one.bare for one in found.entries] == bare
        assert [one.gradient for one in found.entries] == pytest.approx(gradient[ids].tolist(), abs=1e-5)
        assert [one.bare_gradient for one in found.entries] == pytest.approx(
            [float(share) - one for share, one in zip(shares, bare, strict=True)], abs=1e-5
        )
        rest = 1 - float(shares.sum()), epsilon * (1 - len(ids) / found.pieces), 0.0
        assert (found.rest.share, found.rest.target, found.rest.bare) == pytest.approx(rest, abs=1e-5)
        smooth = torch.full((found.pieces,), epsilon / found.pieces, dtype=torch.float64)
        smooth[0] += 1 - epsilon
        assert found.floor == pytest.approx(float(torch.special.entr(smooth).sum()), abs=1e-9)
        assert found.floor <= found.loss


def test_the_bias_of_a_marian_model_counts_too(original):
    translator = load_translator(original)
    run = translator.force("one two", "eins zwei")
    shown = lesson(translator, "one two", run.target_ids)
    assert [each.loss for each in shown.positions] == pytest.approx(
        [-each for each in run.log_probs], abs=1e-5
    )
    for position in range(len(shown.positions)):
        loss = reference(translator, shown, position, 0.1)[0]
        assert smoothed(translator, shown, position, 0.1).loss == pytest.approx(loss, abs=1e-4)


@pytest.mark.parametrize("epsilon", [-0.1, 1.0])
def test_a_smoothing_out_of_range_is_refused(translator, view, epsilon):
    with pytest.raises(ValueError, match="from 0 to below 1"):
        smoothed(translator, view, 0, epsilon)


# --- filters of a sampler -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0.7, top_k=3, seed=2),
        Sampling(temperature=0.9, top_p=0.6, seed=1),
        Sampling(),
        Sampling(temperature=3.0, seed=5),
    ],
    ids=str,
)
def test_before_is_the_model_s_own_probability_and_after_the_sampler_s(translator, sampling):
    run = translator.translate(TEXT, beam_size=1, sample=sampling)
    log_probs = run.distributions()
    after = sampling.filtered(log_probs)
    for step, found in enumerate(filtered_steps(translator, run, sampling)):
        best = log_probs[step].topk(12).indices.tolist()
        written = run.target_ids[step]
        ids = best if written in best else [*best[:-1], written]
        assert [(each.token_id, each.token) for each in found.tokens] == [
            *zip(ids, translator.pieces(ids), strict=True)
        ]
        before = log_probs[step].exp()
        assert [each.before for each in found.tokens] == pytest.approx(before[ids].tolist(), abs=1e-6)
        assert [each.after for each in found.tokens] == pytest.approx(after[step, ids].tolist(), abs=1e-6)
        assert found.tokens[ids.index(written)].after > 0
        left = after[step] > 0
        assert found.left == int(left.sum())
        assert found.mass == pytest.approx(float(before[left].sum()), abs=1e-5)


def test_what_a_change_or_a_rule_of_the_model_forbids_is_never_drawn(translator, original):
    sampling = Sampling()
    run = translator.translate(TEXT, beam_size=1, sample=sampling, interventions=[do.choose(0, "▁vier")])
    first = filtered_steps(translator, run, sampling)[0]
    assert [(each.token, each.after) for each in first.tokens if each.after] == [("▁vier", 1.0)]
    assert (first.left, first.mass) == (
        1,
        pytest.approx(float(run.distributions()[0].exp()[run.target_ids[0]])),
    )
    marian = load_translator(original)
    run = marian.translate("one two three", beam_size=1, sample=sampling)
    barred = {ids[0] for ids in marian.rules.forbidden if len(ids) == 1}
    left = [each.left for each in filtered_steps(marian, run, sampling)]
    assert max(left) <= marian.config.vocab_size - len(barred)
    for step in filtered_steps(marian, run, sampling):
        assert all(not each.after for each in step.tokens if each.token_id in barred)
