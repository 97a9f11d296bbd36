from __future__ import annotations

import numpy as np
import pytest
from changes import changeable
from closed_form import CASES

from lab.backups.backup_heads import backup_heads
from transformer import interventions as do
from transformer.model.sites import AttentionKind
from transformer.what_if import batched

TEXTS = ["one two three", "four five", "six eight nine ten"]


@pytest.fixture(scope="module")
def ready(tokenizer):
    return changeable(tokenizer)


@pytest.mark.parametrize("kind", AttentionKind)
@pytest.mark.parametrize("by", ["zero", "mean"])
def test_every_effect_is_that_of_ablations_in_a_forced_pass(ready, kind, by):
    found = backup_heads(ready, TEXTS[:1], kind, (1, 2), by)
    base = ready.translate(TEXTS[0])

    def effect(*heads):
        changes = [do.ablate(kind, layer, head, by=by) for layer, head in heads]
        changed = ready.force(TEXTS[0], base.target_ids, interventions=changes, capture=False)
        return np.mean(changed.log_probs) - np.mean(base.log_probs)

    own = found.heads.index((1, 2))
    for at, head in enumerate(found.heads):
        assert found.alone[at] == pytest.approx(effect(head), abs=1e-5)
        if at != own:
            assert (
                found.joint[own, at] == found.joint[at, own] == pytest.approx(effect((1, 2), head), abs=1e-5)
            )
    others = np.delete(np.delete(found.joint, own, 0), own, 1)
    assert np.isnan(others[~np.eye(len(others), dtype=bool)]).all()


def test_all_pairs_hold_those_of_one_head_and_the_mean_is_over_sentences(ready):
    every = backup_heads(ready, TEXTS, "cross")
    assert every.heads == tuple((layer, head) for layer in range(3) for head in range(4))
    assert every.effects.shape == (3, 12, 12)
    assert np.isfinite(every.effects).all()
    np.testing.assert_allclose(every.joint, every.effects.mean(0))
    np.testing.assert_array_equal(every.joint, every.joint.T)
    one = backup_heads(ready, TEXTS, "cross", (0, 1))
    np.testing.assert_allclose(one.joint[1], every.joint[1], atol=1e-5)
    expected = every.joint[2, 5] - every.alone[2] - every.alone[5]
    assert every.excess[2, 5] == pytest.approx(expected)
    assert np.isnan(np.diag(every.excess)).all()


def test_a_cancelled_measurement_goes_on_where_it_stopped(ready):
    told = []
    first = backup_heads(
        ready,
        TEXTS,
        "cross",
        (0, 0),
        progress=lambda *at: told.append(at),
        cancelled=lambda: len(told) == 2,
    )
    assert told == [(1, 3), (2, 3)]
    assert first.texts == tuple(TEXTS[:2])
    rest = backup_heads(ready, TEXTS, "cross", (0, 0), progress=lambda *at: told.append(at), so_far=first)
    assert told[2:] == [(1, 3), (2, 3), (3, 3)]
    whole = backup_heads(ready, TEXTS, "cross", (0, 0))
    assert rest.texts == whole.texts
    np.testing.assert_array_equal(rest.effects, whole.effects)
    with pytest.raises(ValueError, match="other heads"):
        backup_heads(ready, TEXTS, "cross", (0, 1), so_far=first)


def test_a_measurement_that_is_cancelled_inside_a_sentence_leaves_the_sentence_out(ready, monkeypatch):
    monkeypatch.setattr(batched, "MOST_TOKENS", 60)
    answers = iter([False, False, True])
    found = backup_heads(ready, TEXTS, "cross", cancelled=lambda: next(answers))
    assert found.texts == ()
    assert found.effects.shape == (0, 12, 12)


def test_a_copying_head_has_no_backup_and_an_unused_one_is_none(solved):
    case = CASES[solved.name]
    found = backup_heads(solved, [case.sentence], "cross", by="zero")
    assert found.alone[0] < -1
    assert found.alone[1] == pytest.approx(0, abs=1e-5)
    assert found.excess[0, 1] == pytest.approx(0, abs=1e-5)


def test_what_cannot_be_measured_is_said(ready, translator):
    with pytest.raises(do.InterventionError, match="no mean outputs"):
        backup_heads(translator, TEXTS, "cross")
    with pytest.raises(do.InterventionError, match="not by 'uniform'"):
        backup_heads(ready, TEXTS, "cross", by="uniform")
    with pytest.raises(do.InterventionError, match="layer 4"):
        backup_heads(ready, TEXTS, "cross", (3, 0))
    with pytest.raises(do.InterventionError, match="encoder, decoder or cross"):
        backup_heads(ready, TEXTS, "sideways")
    long = "one " * 2000
    told = []
    found = backup_heads(ready, [long, TEXTS[0]], "cross", (0, 0), progress=lambda *at: told.append(at))
    assert found.texts == (TEXTS[0],)
    assert told == [(1, 2), (2, 2)]
    with pytest.raises(ValueError, match="No sentence"):
        _ = backup_heads(ready, [long], "cross", (0, 0)).joint
