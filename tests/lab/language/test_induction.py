from __future__ import annotations

import math

import numpy as np
import pytest

from lab.language.induction import (
    Repeated,
    copying,
    followers,
    head_scores,
    previous,
    ranked,
)

BOS = 1
SEQUENCES = Repeated.drawn(range(4, 200), BOS, length=12, count=6)


def one_hot(targets):
    """(n, n) all weight of each row on one key."""
    return np.eye(len(targets))[targets]


def made_heads(ids):
    """(1, 4, n, n): an induction head, a previous-token head, an even one, one on the same token before."""
    n = len(ids)
    earlier = [max((at for at in range(row) if ids[at] == ids[row]), default=-1) for row in range(n)]
    induction = one_hot([at + 1 if at >= 0 else 0 for at in earlier])
    even = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    back = one_hot([max(row - 1, 0) for row in range(n)])
    return np.stack([induction, back, even, one_hot([max(at, 0) for at in earlier])])[None]


def test_a_sequence_repeats_different_pieces_after_a_start_token():
    assert SEQUENCES.ids.shape == (6, 1 + 2 * 12)
    assert (SEQUENCES.ids[:, 0] == BOS).all()
    assert (SEQUENCES.ids[:, 1:13] == SEQUENCES.ids[:, 13:]).all()
    assert all(len(set(row[1:13])) == 12 for row in SEQUENCES.ids.tolist())
    assert len({tuple(row) for row in SEQUENCES.ids.tolist()}) == 6
    again = Repeated.drawn(range(4, 200), BOS, length=12, count=6)
    assert np.array_equal(again.ids, SEQUENCES.ids)


def test_followers_are_the_keys_after_the_same_token_and_never_later_than_the_row():
    ids = np.array([1, 7, 8, 7, 9, 7])
    expected = np.zeros((6, 6))
    expected[3, 2] = expected[5, 2] = expected[5, 4] = 1
    assert np.array_equal(followers(ids), expected)
    assert previous(3).tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_a_made_induction_head_scores_one_and_the_others_almost_nothing():
    scores = head_scores(made_heads, SEQUENCES)
    assert scores.induction.shape == (1, 4)
    assert scores.induction[0, 0] == pytest.approx(1)
    assert scores.induction[0, [1, 3]] == pytest.approx([0, 0])
    assert scores.previous[0, 1] == pytest.approx(1)
    assert scores.previous[0, [0, 3]] == pytest.approx([0, 0])


def test_an_even_head_has_the_scores_of_even_weights():
    scores = head_scores(made_heads, SEQUENCES)
    rows = np.arange(13, 25) + 1
    assert scores.even_induction == pytest.approx((1 / rows).mean())
    assert scores.induction[0, 2] == pytest.approx(scores.even_induction)
    assert scores.previous[0, 2] == pytest.approx(scores.even_previous)


def test_with_three_copies_the_third_has_two_places_to_look_back_to():
    three = Repeated.drawn(range(4, 60), BOS, length=5, count=2, copies=3)
    assert followers(three.ids[0]).sum(1).tolist() == [0] * 6 + [1] * 5 + [2] * 5


def copier(certainty, pieces=100):
    """Log-probabilities of a model that knows what followed the same token before, and nothing else."""

    def log_probs(ids):
        found = []
        for at in range(1, len(ids)):
            after = [ids[k + 1] for k in range(at - 1) if ids[k] == ids[at - 1]]
            found.append(math.log(certainty if after and after[-1] == ids[at] else 1 / pieces))
        return np.array(found)

    return log_probs


def test_copying_compares_the_same_places_of_both_copies_without_their_first_piece():
    found = copying(copier(0.9), SEQUENCES)
    assert found.first["value"] == pytest.approx(math.log(100), rel=1e-4)
    assert found.last["value"] == pytest.approx(-math.log(0.9), rel=1e-4)
    assert found.gain["value"] == pytest.approx(math.log(90), rel=1e-4)


def test_a_model_that_does_not_look_back_gains_nothing():
    drawn = np.random.default_rng(3)
    found = copying(lambda ids: -drawn.normal(5, 1, len(ids) - 1), SEQUENCES)
    assert found.gain["low"] < 0 < found.gain["high"]


def test_heads_are_ranked_by_their_scores():
    assert ranked(np.array([[0.1, 0.9], [0.5, 0.1]])) == [(0, 1, 0.9), (1, 0, 0.5), (0, 0, 0.1), (1, 1, 0.1)]


@pytest.mark.parametrize("sizes", [{"length": 9}, {"copies": 1}, {"length": 1}])
def test_what_is_no_repetition_is_refused(sizes):
    with pytest.raises(ValueError, match="at least 2 copies"):
        Repeated.drawn(range(4, 10), BOS, **{"length": 3, **sizes})
