"""Queries built in the plane of two keys, against attention written out here in float64."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from forged import forged

from explorer.lenses.measures.stream import UnmeasuredError
from explorer.lenses.what_if.build import COPY, DRAWS, FURTHEST, NEAR, SAFE, Plane, plane_of, short_of
from explorer.lenses.what_if.questions.question import GOALS
from transformer import AttentionKind, Translation
from transformer.attention import ScoreRule
from transformer.translator import Translator

ENCODER, DECODER, CROSS = AttentionKind.ENCODER, AttentionKind.DECODER, AttentionKind.CROSS


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


@pytest.fixture(scope="module")
def run(translator: Translator) -> Translation:
    return translator.translate("one two three four", beam_size=1)


def keys_of(run: Translation, kind: AttentionKind, layer: int, head: int) -> np.ndarray:
    return run.head(kind, layer, head).key.astype(np.float64)


@pytest.mark.parametrize("kind", [ENCODER, CROSS])
def test_weights_and_output_are_those_of_the_equation(run: Translation, kind: AttentionKind):
    found = plane_of(run, (kind, 1, 2), 1, (0, 2), "copy")
    keys, value = keys_of(run, kind, 1, 2), run.head(kind, 1, 2).value
    query = 3.5 * (2.0 * unit(keys[0]) - 0.5 * unit(keys[2]))
    scores = keys @ query / np.sqrt(keys.shape[1])
    own = found.query(2.0, -0.5, 3.5)
    assert found.scores(own).numpy() == pytest.approx(scores, abs=1e-4)
    assert found.weights(own) == pytest.approx(softmax(scores), abs=1e-5)
    assert found.output(found.weights(own)) == pytest.approx(softmax(scores) @ value, abs=1e-4)


def test_the_model_s_own_query_gives_the_recorded_row(run: Translation):
    found = plane_of(run, (CROSS, 0, 1), 2, (0, 1), "copy")
    assert found.weights(found.record.query[1, 2]) == pytest.approx(run.weights(CROSS, 0, 1)[2], abs=1e-6)


def test_the_mask_holds_for_a_built_query(run: Translation):
    found = plane_of(run, (DECODER, 0, 0), 2, None, "copy")
    weights = found.weights(found.query(5, 5, 5))
    assert not weights[3:].any()
    assert weights.sum() == pytest.approx(1)
    assert max(found.pair) <= 2
    assert plane_of(run, (DECODER, 0, 0), 2, (0, 4), "copy").pair == found.pair  # key 5 is masked
    with pytest.raises(UnmeasuredError, match="only one key"):
        plane_of(run, (DECODER, 0, 0), 0, None, "copy")


def test_seen_from_above_products_in_the_plane_are_kept(run: Translation):
    found = plane_of(run, (CROSS, 1, 0), 0, (1, 3), "copy")
    keys = keys_of(run, CROSS, 1, 0)
    across = unit(keys[1]) @ unit(keys[3])
    query = np.array([2 - 3 * across, -3 * np.sqrt(1 - across**2)])  # 2 k̂_i − 3 k̂_j in the two axes
    assert found.flat @ query == pytest.approx(keys @ (2 * unit(keys[1]) - 3 * unit(keys[3])), abs=1e-3)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("kind", [ENCODER, CROSS])
def test_no_query_of_a_fine_net_is_better_than_the_best(run: Translation, kind: AttentionKind, goal: str):
    for pair in itertools.islice(itertools.combinations(range(5), 2), 4):
        found = plane_of(run, (kind, 0, 3), 0, pair, goal)
        keys = keys_of(run, kind, 0, 3)
        units = np.stack([unit(keys[key]) for key in pair])
        net = np.linspace(-FURTHEST, FURTHEST, 301)
        points = np.stack(np.meshgrid(net, net), axis=-1).reshape(-1, 2)
        weights = softmax(points @ units @ keys.T / np.sqrt(keys.shape[1]))
        least = weights[:, list(pair)[: 1 if goal == "copy" else 2]].min(-1)
        best, (a, b) = found.best(goal)
        assert best >= least.max() - 1e-4
        own = found.weights(found.query(a, b))[list(pair)]
        assert (own[0] if goal == "copy" else own.min()) == pytest.approx(best, abs=1e-2)


def test_goals_are_met_at_their_ends_only():
    assert short_of("copy", COPY, 0) <= 0 < short_of("copy", COPY - 1e-3, 0)
    assert short_of("average", 0.5 - NEAR + 1e-9, 0.5) <= 0
    assert short_of("average", 0.5, 0.5 - NEAR - 1e-3) > 0
    assert short_of("average", 0.95, 0.05) > 0


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_disturbed_keys_are_disturbed_by_their_share(run: Translation, share: float):
    found = plane_of(run, (CROSS, 2, 1), 0, (0, 1), "copy")
    keys, query = keys_of(run, CROSS, 2, 1), found.query(3, -2, 2)
    noise = np.random.default_rng(0).standard_normal((DRAWS, *keys.shape))
    moved = np.stack([keys + share * np.linalg.norm(keys, axis=1)[:, None] * _units(each) for each in noise])
    assert np.linalg.norm(moved - keys, axis=-1) == pytest.approx(
        np.broadcast_to(share * np.linalg.norm(keys, axis=1), moved.shape[:2])
    )
    expected = softmax(moved @ query.double().numpy() / np.sqrt(keys.shape[1]))
    assert found.disturbed(query, share) == pytest.approx(expected, abs=1e-5)


def _units(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_longer_balance_tips_more_and_two_copies_do_not(run: Translation):
    """The claim of the lessons, where a plane can both average and copy."""

    def change(found: Plane, queries: list, pair: list[int]) -> float:
        own = np.mean([found.weights(each) for each in queries], axis=0)[pair]
        moved = np.mean([found.disturbed(each, 0.02) for each in queries], axis=0)[:, pair]
        return float(np.abs(moved - own).max(1).mean())

    able = [
        found
        for head in range(4)
        if (found := plane_of(run, (ENCODER, 0, head), 0, None, "average")).best("average")[0] > 0.49
    ]
    assert able
    for found in able:
        pair, (a, b) = [*found.pair], found.best("average")[1]
        level: Callable[[float], float] = lambda by, a=a, b=b, found=found, pair=pair: change(  # noqa: E731
            found, [found.query(a, b, by)], pair
        )
        assert level(0.25) < level(0.5) < level(1)
        copies = (found, Plane(found.record, found.head, found.row, (pair[1], pair[0])))
        if all(each.best("copy")[0] > 0.999 for each in copies):
            assert change(found, [each.copying() for each in copies], pair) < level(0.25)


def test_scores_that_are_no_scaled_products_are_refused(run: Translation):
    assert run.attention is not None
    layers = {CROSS: (replace(run.attention.layer(CROSS, 0), score=ScoreRule("dot")),)}
    other = replace(run, attention=forged(run.attention, layers=layers))
    with pytest.raises(UnmeasuredError, match="no query is built"):
        plane_of(other, (CROSS, 0, 0), 0, None, "copy")


def test_of_all_pairs_one_is_taken_that_reaches_the_goal_if_there_is_one(run: Translation):
    for head in range(4):
        found = plane_of(run, (ENCODER, 1, head), 0, None, "average")
        pairs = itertools.combinations(range(len(found.mask)), 2)
        able = [plane_of(run, (ENCODER, 1, head), 0, pair, "average").best("average")[0] for pair in pairs]
        assert (found.best("average")[0] > 0.48) == (max(able) > 0.48)


def test_a_copy_is_as_long_as_it_must_be(run: Translation):
    for head in range(4):
        found = plane_of(run, (CROSS, 0, head), 0, None, "copy")
        query = found.copying()
        assert found.weights(query)[found.pair[0]] >= SAFE - 1e-3
        assert found.weights(0.95 * query)[found.pair[0]] < SAFE
