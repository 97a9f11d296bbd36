from __future__ import annotations

import numpy as np
import pytest
from changes import INSIDE, OTHER, TEXT, TOKENS, changeable
from closed_form import CASES

from explorer.lenses.what_if.random_heads import random_heads, same_change_elsewhere
from transformer import interventions as do

IDS = tuple(range(40, 46))


@pytest.fixture(scope="module")
def ready(tokenizer):
    return changeable(tokenizer)


@pytest.mark.parametrize(
    "change",
    [
        do.ablate("cross", 1, 2, by="mean"),
        do.set_row("decoder", 2, 0, 3, {1: 0.5}),
        do.patch(do.head_output("cross", 1, 0), OTHER, [0, 3]),
    ],
    ids=str,
)
def test_every_number_is_that_of_a_forced_pass(ready, change):
    beside = [INSIDE["hide"], INSIDE["scale"]]
    found = random_heads(ready, TEXT, IDS, change, beside)
    assert found.complete
    assert len(set(found.controls)) == 3
    assert change not in found.controls

    def forced(*changes):
        return ready.force(TEXT, IDS, interventions=[*beside, *changes]).log_probs

    np.testing.assert_array_equal(found.base, forced())
    np.testing.assert_array_equal(found.with_change, forced(change))
    for control, measured in zip(found.controls, found.with_controls, strict=True):
        np.testing.assert_array_equal(measured, forced(control))
    assert found.effect == pytest.approx(sum(forced(change)) - sum(forced()))
    assert found.effects.shape == (3,)


def test_the_copying_head_matters_and_no_other_does(solved):
    case = CASES[solved.name]
    found = random_heads(solved, case.sentence, case.target_tokens, do.ablate("cross", 0, 0))
    assert found.effect < -5
    np.testing.assert_allclose(found.effects, 0, atol=1e-5)
    assert found.as_large == 0
    unused = random_heads(solved, case.sentence, case.target_tokens, do.ablate("cross", 0, 1))
    assert unused.as_large == len(unused.controls) == 1


def test_if_there_are_many_a_seed_draws_different_ones(ready):
    pair = do.ablate("cross", 0, [0, 1])
    only, complete = same_change_elsewhere(pair, ready.config)
    assert [each.head for each in only] == [(2, 3)]
    assert complete
    single = do.ablate("cross", 0, 3)
    drawn = [same_change_elsewhere(single, ready.config, count=2, seed=seed)[0] for seed in range(8)]
    assert drawn[0] == same_change_elsewhere(single, ready.config, count=2, seed=0)[0]
    assert len(set(drawn)) > 1
    assert all(len(set(each)) == 2 for each in drawn)
    assert not same_change_elsewhere(single, ready.config, count=2)[1]


def test_what_has_no_control_is_refused_with_a_sentence(ready):
    for change in (TOKENS["choose"], do.hide(0), do.patch(do.encoder_output(), OTHER, [0])):
        with pytest.raises(do.InterventionError, match="control for a change of heads"):
            random_heads(ready, TEXT, IDS, change)
    with pytest.raises(do.InterventionError, match="there are 0"):
        random_heads(ready, TEXT, IDS, do.ablate("cross", 0))
    with pytest.raises(ValueError, match="count is 0"):
        random_heads(ready, TEXT, IDS, do.ablate("cross", 0, 0), count=0)
