from __future__ import annotations

import pytest

from explorer.lenses.targets.filters import filtered_steps
from transformer import Sampling, load_translator
from transformer import interventions as do

TEXT = "one two three"


def sampled(translator, sampling, **more):
    return translator.translate(TEXT, beam_size=1, sample=sampling, **more)


def test_before_is_the_model_s_own_probability_and_after_the_sampler_s(translator):
    sampling = Sampling(temperature=0.7, top_k=3, seed=2)
    run = sampled(translator, sampling)
    log_probs = run.distributions()
    after = sampling.filtered(log_probs)
    for step, now in enumerate(filtered_steps(translator, run, sampling)):
        assert now.left == 3
        kept = log_probs[step].exp()[after[step] > 0]
        assert now.mass == pytest.approx(float(kept.sum()), abs=1e-6)
        for each in now.tokens:
            assert each.before == pytest.approx(float(log_probs[step, each.token_id].exp()), abs=1e-6)
            assert each.after == pytest.approx(float(after[step, each.token_id]), abs=1e-6)


def test_without_filters_nothing_changes(translator):
    sampling = Sampling()
    run = sampled(translator, sampling)
    for now in filtered_steps(translator, run, sampling):
        assert [each.after for each in now.tokens] == pytest.approx(
            [each.before for each in now.tokens], abs=1e-6
        )
        assert now.mass == pytest.approx(1, abs=1e-5)


def test_the_token_written_is_always_listed_and_could_be_drawn(translator):
    sampling = Sampling(temperature=3.0, seed=5)
    run = sampled(translator, sampling)
    for step, now in zip(run.steps, filtered_steps(translator, run, sampling), strict=True):
        (written,) = [each for each in now.tokens if each.token_id == step.token_id]
        assert written.token == step.token
        assert written.after > 0


def test_what_a_change_forbids_is_never_drawn(translator):
    sampling, changes = Sampling(), [do.choose(0, "▁vier")]
    first = filtered_steps(translator, sampled(translator, sampling, interventions=changes), sampling)[0]
    assert first.left == 1
    (written,) = [each for each in first.tokens if each.after > 0]
    assert (written.token, written.after) == ("▁vier", 1.0)
    assert written.before < 1


def test_what_a_model_s_rules_forbid_is_never_drawn(original):
    translator, sampling = load_translator(original), Sampling()
    run = translator.translate("one two three", beam_size=1, sample=sampling)
    barred = {ids[0] for ids in translator.rules.forbidden if len(ids) == 1}
    for now in filtered_steps(translator, run, sampling):
        assert all(not each.after for each in now.tokens if each.token_id in barred)
