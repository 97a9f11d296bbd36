from __future__ import annotations

import numpy as np
import pytest

from lab.backups.backup_heads import BackupHeads
from lab.backups.pair_effects import PairEffects, from_json, pair_effects, to_json
from transformer.model.sites import AttentionKind

HEADS = ((0, 0), (0, 1), (1, 0))
ALONE = np.array([-0.01, -0.1, -0.2])
"""Head 1 of layer 1 hardly matters alone."""


def effects(excess: dict[tuple[int, int], float]) -> np.ndarray:
    joint = ALONE[:, None] + ALONE
    for (one, other), value in excess.items():
        joint[one, other] += value
        joint[other, one] += value
    np.fill_diagonal(joint, ALONE)
    return joint


def measured() -> BackupHeads:
    first = effects({(0, 1): -0.2, (1, 2): 0.05, (0, 2): -0.01})
    second = effects({(0, 1): -0.2, (1, 2): 0.05, (0, 2): 0.005})
    return BackupHeads(AttentionKind.CROSS, "mean", HEADS, np.stack([first, second]))


def test_the_means_are_those_of_the_measurement_and_sentences_with_an_excess_are_counted():
    found = pair_effects(measured())
    np.testing.assert_allclose(found.joint, measured().effects.mean(0))
    assert found.excess[[0, 1, 0], [1, 2, 2]] == pytest.approx([-0.2, 0.05, -0.0025])
    np.testing.assert_allclose(found.alone, ALONE)
    assert found.more.tolist() == [[0, 2, 1], [2, 0, 0], [1, 0, 0]]
    assert found.sentences == 2


def test_the_head_that_is_hardly_missed_alone_may_take_over_and_matters_more_by_the_excess():
    first, second = pair_effects(measured()).take_overs()
    assert (first.off, first.head) == ((0, 1), (0, 0))
    assert first.usual == pytest.approx(-0.01)
    assert first.then == pytest.approx(-0.21)
    assert (first.low, first.high) == (pytest.approx(-0.2), pytest.approx(-0.2))
    assert first.sentences == 2
    assert first.control == first.strongest == pytest.approx(0.05)
    assert (second.off, second.head) == ((1, 0), (0, 0))
    assert second.then - second.usual == pytest.approx(-0.0025)
    assert (second.low, second.high) == (pytest.approx(-0.01), pytest.approx(0.005))


def test_a_pair_that_costs_less_than_its_parts_and_a_head_that_helps_when_off_take_nothing_over():
    joint = np.array([[0.02, 0.01], [0.01, 0.03]])
    more = np.zeros((2, 2), int)
    harmless = PairEffects(AttentionKind.ENCODER, "zero", HEADS[:2], 1, joint, more, more * 0.0, more * 0.0)
    assert harmless.excess[0, 1] < 0
    assert not harmless.take_overs()
    needing = PairEffects(
        AttentionKind.ENCODER, "zero", HEADS, 1, effects({(0, 1): 0.1}), *np.zeros((3, 3, 3))
    )
    assert not [each for each in needing.take_overs() if each.then - each.usual < -1e-9]


def test_a_file_gives_back_what_was_written():
    found = pair_effects(measured())
    again = from_json(AttentionKind.CROSS, to_json(found))
    np.testing.assert_allclose(again.joint, found.joint, atol=1e-6)
    np.testing.assert_array_equal(again.more, found.more)
    assert (again.by, again.heads, again.sentences) == ("mean", HEADS, 2)


@pytest.mark.parametrize("values", [{}, {"heads": [[0, 0]]}, {"heads": 3}])
def test_other_values_are_refused(values: dict[str, object]):
    with pytest.raises((KeyError, TypeError)):
        from_json(AttentionKind.CROSS, values)


def test_before_the_first_sentence_there_is_nothing_to_say():
    nothing = BackupHeads(AttentionKind.CROSS, "mean", HEADS, np.zeros((0, 3, 3)))
    with pytest.raises(ValueError, match="No sentence"):
        pair_effects(nothing)
