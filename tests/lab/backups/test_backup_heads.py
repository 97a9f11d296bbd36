from __future__ import annotations

import numpy as np
import pytest
from changes import changeable
from closed_form import CASES

from lab.backups.backup_heads import BackupHeads, backup_heads
from lab.backups.pair_effects import pair_effects
from transformer import interventions as do
from transformer.model.sites import AttentionKind
from transformer.runs import batched

TEXTS = ["one two three", "four five", "six eight nine ten"]


@pytest.fixture(scope="module")
def ready(tokenizer):
    return changeable(tokenizer)


def measured(*asked) -> BackupHeads:
    *_, found = backup_heads(*asked)
    return found


@pytest.mark.parametrize("kind", AttentionKind)
@pytest.mark.parametrize("by", ["zero", "mean"])
def test_every_effect_is_that_of_ablations_in_a_forced_pass(ready, kind, by):
    found = measured(ready, TEXTS[:1], kind, by)
    base = ready.translate(TEXTS[0])

    def effect(*heads):
        changes = [do.ablate(kind, layer, head, by=by) for layer, head in heads]
        changed = ready.force(TEXTS[0], base.target_ids, interventions=changes, capture=False)
        return np.mean(changed.log_probs) - np.mean(base.log_probs)

    (joint,), own = found.effects, found.heads.index((1, 2))
    for at, head in enumerate(found.heads):
        assert joint[at, at] == pytest.approx(effect(head), abs=1e-5)
        if at != own:
            assert joint[own, at] == joint[at, own] == pytest.approx(effect((1, 2), head), abs=1e-5)


def test_every_sentence_has_every_pair_however_many_passes_it_takes(ready, monkeypatch):
    one, two, every = backup_heads(ready, TEXTS, "cross")
    assert every.heads == tuple((layer, head) for layer in range(3) for head in range(4))
    assert [len(each.effects) for each in (one, two, every)] == [1, 2, 3]
    assert every.effects.shape == (3, 12, 12)
    assert np.isfinite(every.effects).all()
    np.testing.assert_array_equal(every.effects, every.effects.swapaxes(1, 2))
    np.testing.assert_array_equal(every.effects[:2], two.effects)
    monkeypatch.setattr(batched, "MOST_TOKENS", 60)
    np.testing.assert_allclose(measured(ready, TEXTS, "cross").effects, every.effects, atol=1e-5)


def test_a_copying_head_has_no_backup_and_an_unused_one_is_none(solved):
    case = CASES[solved.name]
    found = pair_effects(measured(solved, [case.sentence], "cross", "zero"))
    assert found.alone[0] < -1
    assert found.alone[1] == pytest.approx(0, abs=1e-5)
    assert found.excess[0, 1] == pytest.approx(0, abs=1e-5)
    assert np.isnan(np.diag(found.excess)).all()


def test_what_cannot_be_measured_is_said(ready, translator):
    with pytest.raises(do.InterventionError, match="no mean outputs"):
        measured(translator, TEXTS, "cross")
    with pytest.raises(do.InterventionError, match="not by 'uniform'"):
        measured(ready, TEXTS, "cross", "uniform")
    with pytest.raises(do.InterventionError, match="encoder, decoder or cross"):
        measured(ready, TEXTS, "sideways")


def test_a_sentence_that_is_too_long_is_left_out(ready):
    nothing, one = backup_heads(ready, ["one " * 2000, TEXTS[0]], "cross")
    assert (len(nothing.effects), len(one.effects)) == (0, 1)
    with pytest.raises(ValueError, match="No sentence"):
        pair_effects(nothing)
