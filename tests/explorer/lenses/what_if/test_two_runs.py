from __future__ import annotations

import io
import math

import numpy as np
import pytest
from changes import INSIDE, TEXT, changeable
from closed_form import CASES

from explorer.lenses import compare_runs
from transformer import interventions as do
from transformer import load_trace, save_trace
from transformer.run import NotCapturedError

LENGTH = 7


@pytest.fixture(scope="module")
def ready(tokenizer):
    return changeable(tokenizer)


@pytest.fixture(scope="module")
def base(ready):
    return ready.translate(TEXT, max_length=LENGTH)


def test_a_run_does_not_differ_from_itself(ready, base):
    found = compare_runs(base, ready.translate(TEXT, max_length=LENGTH))
    assert found.parting is None
    assert len(found.steps) == len(base.steps)
    assert found.target == tuple((step, step) for step in range(len(base.steps)))
    np.testing.assert_allclose(found.delta_log_p, 0, atol=1e-6)
    np.testing.assert_allclose(found.kl, 0, atol=1e-9)
    for kind, site in base.config.sites.items():
        assert found.largest(kind).shape == (site.n_layers, 4)
        assert (found.largest(kind) == 0).all()


@pytest.mark.parametrize("name", INSIDE)
def test_in_a_forced_pair_every_step_compares(ready, base, name):
    plain, changed = (
        ready.force(TEXT, base.target_ids, interventions=changes) for changes in ([], [INSIDE[name]])
    )
    found = compare_runs(plain, changed)
    assert found.parting is None
    expected = np.array(changed.log_probs) - plain.log_probs
    np.testing.assert_allclose(found.delta_log_p, expected, atol=2e-5)
    p, q = (np.exp(run.distributions().double().numpy()) for run in (plain, changed))
    np.testing.assert_allclose(found.kl, (p * np.log(p / q)).sum(-1), atol=2e-5)
    for kind, layer in plain.attention.places:
        difference = changed.attention.weights(kind, layer) - plain.attention.weights(kind, layer)
        np.testing.assert_allclose(found.maps(kind, layer), difference, atol=1e-6)
        np.testing.assert_allclose(found.largest(kind)[layer], np.abs(difference).max((1, 2)), atol=1e-6)


def test_after_the_parting_no_step_compares(ready, base):
    other = next(each for each in base.steps[2].alternatives if each.token_id != base.target_ids[2])
    changed = ready.translate(TEXT, max_length=LENGTH, interventions=[do.choose(2, other.token_id)])
    found = compare_runs(base, changed)
    assert found.parting == 2
    assert len(found.steps) == len(found.kl) == 3
    np.testing.assert_allclose(found.delta_log_p, 0, atol=2e-5)
    np.testing.assert_allclose(found.kl, 0, atol=1e-6)
    assert found.steps[2].base.token == base.target_tokens[2]
    assert found.steps[2].changed.token == other.token
    assert found.common("decoder").rows == found.common("decoder").columns == ((0, 0), (1, 1), (2, 2))
    assert found.map("cross", 0, 0).shape == (3, 5)
    for kind in base.config.sites:
        np.testing.assert_allclose(found.largest(kind), 0, atol=1e-5)


def test_candidates_have_their_probability_in_both_runs(ready, base):
    changed = ready.force(TEXT, base.target_ids, interventions=[INSIDE["ablate by zero"]])
    rows = [run.distributions() for run in (base, changed)]
    for at, step in enumerate(compare_runs(base, changed).steps):
        ids = [each.token_id for each in step.candidates]
        assert {step.base.token_id, step.changed.token_id} <= set(ids)
        assert len(ids) == len(set(ids)) >= len(base.steps[at].alternatives)
        for each in step.candidates:
            assert each.token == ready.pieces([each.token_id])[0]
            assert each.base == pytest.approx(float(rows[0][at, each.token_id]))
            assert each.changed == pytest.approx(float(rows[1][at, each.token_id]))
        best = [max(each.base, each.changed) for each in step.candidates]
        assert best == sorted(best, reverse=True)


def test_the_known_token_is_lost_where_the_copying_head_is_ablated(solved):
    case = CASES[solved.name]
    base = solved.translate(case.sentence)
    without = [do.ablate("cross", 0, 0, by="zero")]
    lost = compare_runs(base, solved.force(case.sentence, base.target_ids, interventions=without))
    assert (lost.delta_log_p < -1).all()
    assert (lost.kl > 1).all()
    unused = solved.force(case.sentence, base.target_ids, interventions=[do.ablate("cross", 0, 1)])
    np.testing.assert_allclose(compare_runs(base, unused).delta_log_p, 0, atol=1e-5)


def test_source_tokens_that_both_runs_read_are_aligned(ready, base):
    dropped = ready.force(TEXT, base.target_ids, interventions=[do.drop_source(1)])
    found = compare_runs(base, dropped)
    assert found.source == ((0, 0), (1, None), (2, 1), (3, 2), (4, 3))
    assert found.common("encoder").rows == ((0, 0), (2, 1), (3, 2), (4, 3))
    expected = (
        dropped.attention.weights("cross", 1, 0) - base.attention.weights("cross", 1, 0)[:, [0, 2, 3, 4]]
    )
    np.testing.assert_allclose(found.map("cross", 1, 0), expected, atol=1e-6)


def test_a_run_that_only_stops_earlier_parts_where_the_other_goes_on(ready, base):
    short = ready.translate(TEXT, max_length=LENGTH - 2)
    found = compare_runs(base, short)
    assert found.parting == len(found.steps) == LENGTH - 2
    assert found.target[-2:] == ((LENGTH - 2, None), (LENGTH - 1, None))


def test_runs_from_files_compare_as_far_as_they_keep_their_distributions(ready, base):
    def opened(run):
        file = io.BytesIO()
        save_trace(run, file)
        file.seek(0)
        return load_trace(file)

    changed = ready.force(TEXT, base.target_ids, interventions=[INSIDE["scale"]])
    whole, kept = compare_runs(base, changed), compare_runs(opened(base), opened(changed))
    np.testing.assert_allclose(kept.delta_log_p, whole.delta_log_p, atol=2e-5)
    assert np.isnan(kept.kl).all()
    for kind in base.config.sites:
        np.testing.assert_allclose(kept.largest(kind), whole.largest(kind), atol=1e-6)
    unknown = [each for step in kept.steps for each in step.candidates if math.isnan(each.base)]
    assert all(not math.isnan(each.changed) for each in unknown)


def test_runs_without_capture_compare_but_for_their_maps(ready, base):
    bare = ready.translate(TEXT, max_length=LENGTH, capture=False)
    found = compare_runs(bare, base)
    assert found.parting is None
    with pytest.raises(NotCapturedError):
        found.largest("cross")


def test_runs_of_different_models_are_refused(ready, base, translator, tokenizer):
    wider = changeable(tokenizer, n_decoder_layers=2)
    with pytest.raises(ValueError, match="different shapes"):
        compare_runs(base, wider.translate(TEXT, max_length=2))
