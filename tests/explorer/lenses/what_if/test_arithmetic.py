"""Other scores, weights, masks and queries of a head, against the same arithmetic written out or in
torch."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from forged import forged

from explorer.lenses.measures.stream import UnmeasuredError
from explorer.lenses.what_if import arithmetic
from explorer.lenses.what_if.arithmetic import Masking, leak, masked_weights
from explorer.lenses.what_if.build import (
    COPY,
    DRAWS,
    FURTHEST,
    NEAR,
    SAFE,
    Plane,
    plane_of,
    short_of,
)
from transformer import AttentionKind, Translation
from transformer.attention import ScoreRule
from transformer.translator import Translator

RANDOM = np.random.default_rng(0)
QUERY = RANDOM.normal(size=8)
KEY = RANDOM.normal(size=(5, 8))
VALUE = RANDOM.normal(size=(5, 8))
MASK = np.array([True, True, True, True, False])
ALL = np.ones(5, bool)
NONE = np.zeros(5, bool)
SCORES = KEY @ QUERY / math.sqrt(8)
SHARES = np.array([0, 0.25, 0.75, 0, 0])


def test_the_softmax_is_torch_s_over_the_visible_keys_of_every_row():
    rows = np.stack([SCORES, 3 * SCORES])
    masks = np.stack([MASK, ALL])
    expected = torch.tensor(rows).masked_fill(~torch.tensor(masks), -torch.inf).softmax(-1)
    np.testing.assert_allclose(arithmetic.softmax(rows, masks), expected, atol=1e-12)
    assert arithmetic.softmax(np.array([1e4, 0.0]), np.ones(2, bool)).tolist() == [1.0, 0.0]
    assert arithmetic.softmax(SCORES, NONE).tolist() == [0.0] * 5


@pytest.mark.parametrize("factor", [0.2, 1.0, 50.0])
def test_saturation_is_the_jacobian_s_norm_and_the_share_of_the_largest_entropy(factor):
    scores = torch.tensor(SCORES * factor)
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(0), scores)
    weights = arithmetic.softmax(SCORES * factor, ALL)
    entropy = -sum(w * math.log(w) for w in weights if w) / math.log(5)
    expected = (weights.max(), entropy, float(jacobian.norm()))
    assert arithmetic.saturation(weights, ALL) == pytest.approx(expected, abs=1e-7)
    assert arithmetic.saturation(np.array([1.0, 0.0]), np.array([True, False])) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (arithmetic.without_projections(QUERY, KEY), SCORES),
        (arithmetic.hard(np.array([0.0, 2.0, 1.0, -1.0, 9.0]), MASK), [0, 1, 0, 0, 0]),
        (arithmetic.hard(SCORES, NONE), [0] * 5),
        (
            arithmetic.entropy(np.stack([SHARES, np.eye(5)[1]])),
            [0.75 * math.log(4 / 3) + math.log(4) / 4, 0],
        ),
    ],
)
def test_other_arithmetic_is_what_its_formula_says(values, expected):
    np.testing.assert_allclose(values, expected, atol=1e-12)


CAUSAL = np.tri(3, dtype=bool)
LOGS = np.log(np.array([[1, 2, 3], [1, 1, 2], [2, 1, 1]], dtype=np.float32))


@pytest.mark.parametrize(
    ("way", "masked", "sums", "unequal", "zeros", "alone"),
    [
        (Masking.MINUS_INFINITY, [0, 0, 0], [1, 1, 1], [False] * 3, 3, 0),
        (Masking.ZERO, [2 / 3, 1 / 3, 0], [1, 1, 1], [False] * 3, 0, 1),
        (Masking.NONE, [5 / 6, 1 / 2, 0], [1, 1, 1], [False] * 3, 0, 1),
        (Masking.AFTER, [0, 0, 0], [1 / 6, 1 / 2, 1], [True, True, False], 3, 0),
    ],
)
def test_a_way_to_mask_leaks_what_it_leaks(way, masked, sums, unequal, zeros, alone):
    found = leak(masked_weights(LOGS, CAUSAL, way), CAUSAL)
    assert found.masked == pytest.approx(masked)
    assert found.sums == pytest.approx(sums)
    assert (found.unequal.tolist(), found.cells, found.zeros) == (unequal, 3, zeros)
    assert masked_weights(LOGS[:1], np.zeros((1, 3), bool), way).sum() == pytest.approx(alone)
    large = np.array([[900, -900, 30]], dtype=np.float32)
    assert masked_weights(large, np.array([[True, True, False]]), way).tolist() == [[1, 0, 0]]


ENCODER, DECODER, CROSS = AttentionKind.ENCODER, AttentionKind.DECODER, AttentionKind.CROSS
GOALS = ("copy", "average")


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def run(translator: Translator) -> Translation:
    return translator.translate("one two three four", beam_size=1)


def keys_of(run: Translation, kind: AttentionKind, layer: int, head: int) -> np.ndarray:
    return run.head(kind, layer, head).key.astype(np.float64)


@pytest.mark.parametrize("kind", [ENCODER, CROSS])
def test_weights_output_and_the_plane_are_those_of_the_equation(
    run: Translation, kind: AttentionKind
):
    found = plane_of(run, (kind, 1, 2), 1, (0, 2), "copy")
    keys = keys_of(run, kind, 1, 2)
    value = run.head(kind, 1, 2).value
    query = 3.5 * (2.0 * unit(keys[0]) - 0.5 * unit(keys[2]))
    scores = keys @ query / np.sqrt(keys.shape[1])
    own = found.query(2.0, -0.5, 3.5)
    assert found.scores(own).numpy() == pytest.approx(scores, abs=1e-4)
    assert found.weights(own) == pytest.approx(softmax(scores), abs=1e-5)
    assert found.record.value[found.head].numpy() == pytest.approx(value)
    across = unit(keys[0]) @ unit(keys[2])
    flat = 3.5 * np.array(
        [2 - 0.5 * across, -0.5 * np.sqrt(1 - across**2)]
    )  # the query in the two axes
    assert found.flat @ flat == pytest.approx(keys @ query, abs=1e-3)
    recorded = found.record.query[found.head, found.row]
    assert found.weights(recorded) == pytest.approx(run.weights(kind, 1, 2)[1], abs=1e-6)


def test_the_mask_holds_for_a_built_query_and_for_its_pair(run: Translation):
    found = plane_of(run, (DECODER, 0, 0), 2, None, "copy")
    weights = found.weights(found.query(5, 5, 5))
    assert not weights[3:].any()
    assert weights.sum() == pytest.approx(1)
    assert max(found.pair) <= 2
    assert plane_of(run, (DECODER, 0, 0), 2, (2, 0), "copy").pair == (2, 0)
    for unseen in ((0, 4), (1, 1)):
        assert plane_of(run, (DECODER, 0, 0), 2, unseen, "copy").pair == found.pair


def test_what_is_no_choice_between_scaled_products_is_refused(run: Translation):
    assert run.attention is not None
    layers = {CROSS: (replace(run.attention.layer(CROSS, 0), score=ScoreRule("dot")),)}
    other = replace(run, attention=forged(run.attention, layers=layers))
    for at, kind, words in ((run, DECODER, "only one key"), (other, CROSS, "no query is built")):
        with pytest.raises(UnmeasuredError, match=words):
            plane_of(at, (kind, 0, 0), 0, None, "copy")


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("kind", [ENCODER, CROSS])
def test_no_query_of_a_fine_net_is_better_than_the_best(
    run: Translation, kind: AttentionKind, goal: str
):
    keys = keys_of(run, kind, 0, 3)
    net = np.linspace(-FURTHEST, FURTHEST, 301)
    points = np.stack(np.meshgrid(net, net), axis=-1).reshape(-1, 2)
    for pair in itertools.islice(itertools.combinations(range(5), 2), 4):
        found = plane_of(run, (kind, 0, 3), 0, pair, goal)
        chosen = list(pair)[: 1 if goal == "copy" else 2]
        weights = softmax(points @ unit(keys[[*pair]]) @ keys.T / np.sqrt(keys.shape[1]))
        best, (a, b) = found.best(goal)
        assert best >= weights[:, chosen].min(-1).max() - 1e-4
        assert found.weights(found.query(a, b))[chosen].min() == pytest.approx(best, abs=1e-2)


@pytest.mark.parametrize(
    ("goal", "first", "second", "short"),
    [
        ("copy", COPY, 0, 0),
        ("copy", COPY - 0.25, 0, 0.25),
        ("average", 0.5 - NEAR, 0.5, 0),
        ("average", 0.5, 0.25, 0.25 - NEAR),
        ("average", 0.95, 0.05, 0.45 - NEAR),
    ],
)
def test_a_goal_is_met_at_its_end(goal: str, first: float, second: float, short: float):
    assert short_of(goal, first, second) == pytest.approx(short)


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_disturbed_keys_are_disturbed_by_their_share(run: Translation, share: float):
    found = plane_of(run, (CROSS, 2, 1), 0, (0, 1), "copy")
    keys = keys_of(run, CROSS, 2, 1)
    query = found.query(3, -2, 2)
    noise = unit(np.random.default_rng(0).standard_normal((DRAWS, *keys.shape)))
    moved = keys + share * np.linalg.norm(keys, axis=1)[:, None] * noise
    expected = softmax(moved @ query.double().numpy() / np.sqrt(keys.shape[1]))
    assert found.disturbed(query, share) == pytest.approx(expected, abs=1e-5)


def test_a_longer_balance_tips_more_and_two_copies_do_not(run: Translation):
    """The claim of the lessons, where a plane can both average and copy."""

    def change(plane: Plane, *queries) -> float:
        pair = [*plane.pair]
        own = np.mean([plane.weights(query) for query in queries], axis=0)[pair]
        moved = np.mean([plane.disturbed(each, 0.02) for each in queries], axis=0)[:, pair]
        return float(np.abs(moved - own).max(1).mean())

    planes = [plane_of(run, (ENCODER, 0, head), 0, None, "average") for head in range(4)]
    able = [found for found in planes if found.best("average")[0] > 0.49]
    assert able
    for found in able:
        at = found.best("average")[1]
        levels = [change(found, found.query(*at, by)) for by in (0.25, 0.5, 1)]
        assert levels == sorted(levels)
        copies = found, replace(found, pair=found.pair[::-1])
        if all(copy.best("copy")[0] > 0.999 for copy in copies):
            assert change(found, *(each.copying() for each in copies)) < levels[0]


def test_of_all_pairs_one_is_taken_that_reaches_the_goal_if_there_is_one(run: Translation):
    for head in range(4):
        found = plane_of(run, (ENCODER, 1, head), 0, None, "average")
        pairs = itertools.combinations(range(len(found.mask)), 2)
        best = max(replace(found, pair=pair).best("average")[0] for pair in pairs)
        assert (found.best("average")[0] > 0.48) == (best > 0.48)


def test_a_copy_is_as_long_as_it_must_be(run: Translation):
    for head in range(4):
        found = plane_of(run, (CROSS, 0, head), 0, None, "copy")
        query = found.copying()
        assert found.weights(query)[found.pair[0]] >= SAFE - 1e-3
        assert found.weights(0.95 * query)[found.pair[0]] < SAFE
