"""Continuing with a candidate: which changes lead there, and what counts as tried."""

from __future__ import annotations

import pytest

from explorer.app.maps.next_token_choice import changes
from transformer import Sampling, Translator
from transformer import interventions as do

TEXT = "one two three four"
STEP = 2


def test_greedy_search_keeps_its_tokens_and_writes_the_other(translator: Translator):
    base = translator.translate(TEXT)
    other = base.steps[STEP].alternatives[3]
    changed = translator.translate(TEXT, interventions=changes(base, STEP, other.token_id))
    assert changed.interventions == (do.choose(STEP, other.token),)
    assert changed.target_ids[: STEP + 1] == (*base.target_ids[:STEP], other.token_id)
    assert changed.steps[STEP].alternatives == base.steps[STEP].alternatives
    assert changed.log_probs[STEP] == pytest.approx(other.log_prob)


def test_the_token_of_greedy_search_itself_needs_no_change(translator: Translator):
    base = translator.translate(TEXT)
    there = changes(base, STEP, base.steps[STEP].alternatives[1].token_id)
    assert changes(translator.translate(TEXT, interventions=there), STEP, base.target_ids[STEP]) == ()


def test_an_earlier_choice_stays_and_a_later_one_ends(translator: Translator):
    base = translator.translate(TEXT)
    run = base
    for step in (1, 3):
        taken = changes(run, step, run.steps[step].alternatives[1].token_id)
        run = translator.translate(TEXT, interventions=taken)
    assert [each.step for each in run.interventions] == [1, 3]
    again = changes(run, 2, run.steps[2].alternatives[1].token_id)
    assert [each.step for each in again] == [1, 2]


def test_a_change_of_the_model_stays(translator: Translator):
    ablated = do.ablate("cross", 0, 0, "zero")
    run = translator.translate(TEXT, interventions=[ablated])
    first = run.steps[STEP].alternatives[0]
    assert changes(run, STEP, first.token_id) == (ablated, do.choose(STEP, first.token))


@pytest.mark.parametrize("way", ["beam", "sample", "forced"])
def test_any_other_way_of_decoding_is_given_the_tokens_before(translator: Translator, way: str):
    runs = {
        "beam": lambda **more: translator.translate(TEXT, beam_size=3, **more),
        "sample": lambda **more: translator.translate(TEXT, sample=Sampling(seed=4), **more),
        "forced": lambda **more: translator.force(TEXT, "eins zwei drei vier", **more),
    }
    base = runs[way]()
    other = base.steps[STEP].alternatives[2].token_id
    taken = changes(base, STEP, other)
    assert taken == (do.prefix([*base.target_ids[:STEP], other]),)
    went_on = runs["beam" if way == "forced" else way](interventions=taken)
    assert went_on.target_ids[: STEP + 1] == (*base.target_ids[:STEP], other)
