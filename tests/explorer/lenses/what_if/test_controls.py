"""Controls of a change: other heads, an untrained twin, and the mean outputs that ablations put in place."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from changes import INSIDE, OTHER, TEXT, TOKENS, changeable
from closed_form import CASES

from explorer.lenses.what_if.controls import (
    mean_outputs,
    random_heads,
    same_change_elsewhere,
    same_tokens,
    untrained_twin,
)
from transformer import interventions as do
from transformer.translator import Translator

IDS = tuple(range(40, 46))
SINGLE = do.ablate("cross", 0, 3)


@pytest.fixture(scope="module")
def ready(tokenizer):
    return changeable(tokenizer)


@pytest.mark.parametrize(
    ("change", "controls"),
    [
        (
            do.ablate("cross", 1, 2, by="mean"),
            [do.ablate("cross", 1, head, by="mean") for head in (0, 1, 3)],
        ),
        (
            do.set_row("decoder", 2, 0, 3, {1: 0.5}),
            [do.set_row("decoder", 2, head, 3, {1: 0.5}) for head in (1, 2, 3)],
        ),
        (
            do.patch(do.head_output("cross", 1, 0), OTHER, [0, 3]),
            [do.patch(do.head_output("cross", 1, head), OTHER, [0, 3]) for head in (1, 2, 3)],
        ),
    ],
    ids=str,
)
def test_every_number_is_that_of_a_forced_pass(ready, change, controls):
    beside = [INSIDE["hide"], INSIDE["scale"]]
    found = random_heads(ready, TEXT, IDS, change, beside)

    def log_p(*changes):
        return sum(ready.force(TEXT, IDS, interventions=[*beside, *changes]).log_probs)

    assert (found.change, found.complete, list(found.controls)) == (change, True, controls)
    assert found.effect == pytest.approx(log_p(change) - log_p())
    assert found.effects == pytest.approx([log_p(each) - log_p() for each in controls])
    assert found.as_large == sum(abs(found.effects) >= abs(found.effect))


def test_the_copying_head_matters_and_no_other_does(solved):
    case = CASES[solved.name]
    copying, unused = (
        random_heads(solved, case.sentence, case.target_tokens, do.ablate("cross", 0, head))
        for head in (0, 1)
    )
    assert copying.effect < -5
    np.testing.assert_allclose(copying.effects, 0, atol=1e-5)
    assert (copying.as_large, unused.as_large, len(unused.controls)) == (0, 1, 1)
    assert copying._replace(effect=1.5, effects=np.array([-1.5, 1.0, 2.0])).as_large == 2


def test_if_there_are_many_a_seed_draws_different_ones(ready):
    only, complete = same_change_elsewhere(do.ablate("cross", 0, [0, 1]), ready.config)
    assert ([each.head for each in only], complete) == ([(2, 3)], True)
    drawn = [same_change_elsewhere(SINGLE, ready.config, count=2, seed=seed)[0] for seed in (*range(8), 0)]
    assert drawn[0] == drawn[-1]
    assert len(set(drawn)) > 1
    assert all(len(set(each)) == 2 and SINGLE not in each for each in drawn)
    assert not same_change_elsewhere(SINGLE, ready.config, count=2)[1]


@pytest.mark.parametrize(
    ("change", "count", "words"),
    [
        (TOKENS["choose"], 20, "control for a change of heads"),
        (do.hide(0), 20, "control for a change of heads"),
        (do.patch(do.encoder_output(), OTHER, [0]), 20, "control for a change of heads"),
        (do.ablate("cross", 0), 20, "needs 4 other heads of the same layer, and there are 0"),
        (do.ablate("cross", 0, [0, 1, 2]), 20, "needs 3 other heads of the same layer, and there are 1"),
        (SINGLE, 0, "count is 0"),
    ],
)
def test_what_has_no_control_is_refused_with_a_sentence(ready, change, count, words):
    with pytest.raises(ValueError, match=words):
        random_heads(ready, TEXT, IDS, change, count=count)


def test_an_untrained_twin_reads_the_same_tokens_and_a_seed_means_one(translator: Translator):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, same, other = (untrained_twin(translator, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected), "the global generator is left alone"
    weights = [twin.model.embedding.weight for twin in (one, same, other, translator)]
    assert [torch.equal(weights[0], each) for each in weights] == [True, True, False, False]
    run = translator.translate("one two three", max_length=6)
    again = same_tokens(one, run)
    assert one.config == translator.config
    assert (again.source_tokens, again.target_tokens) == (run.source_tokens, run.target_tokens)
    assert again.model == "random, untrained twin, seed 1"
    assert again.head("cross", 1, 2).audit.passed


def test_a_mean_is_over_all_rows_of_all_sentences_that_can_be_read(translator: Translator):
    pairs = [("one two", "eins zwei drei"), ("three", None), ("one " * 2000, "eins")]
    means, read = mean_outputs(translator, pairs)
    runs = [translator.force("one two", "eins zwei drei"), translator.translate("three")]
    assert (read, list(means)) == (2, list(translator.config.sites))
    for kind, outputs in means.items():
        for layer, found in enumerate(outputs):
            rows = torch.cat([run.attention.layer(kind, layer).output for run in runs], dim=1)
            torch.testing.assert_close(found, rows.mean(1))
    with pytest.raises(ValueError, match="No sentence"):
        mean_outputs(translator, pairs[2:])
