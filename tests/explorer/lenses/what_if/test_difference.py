from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from closed_form import CASES

from explorer.lenses.what_if.difference import Map, align_tokens, difference, uniform_weights
from explorer.lenses.what_if.untrained import same_tokens, untrained_twin
from transformer.translator import Translator


def edits(a: str, b: str) -> int:
    """The edit distance by its definition."""
    if not a or not b:
        return len(a) + len(b)
    rest = edits(a[1:], b[1:])
    return rest if a[0] == b[0] else 1 + min(rest, edits(a[1:], b), edits(a, b[1:]))


@pytest.mark.parametrize("seed", range(20))
def test_tokens_are_aligned_with_the_fewest_edits_and_in_order(seed: int):
    generator = np.random.default_rng(seed)
    a, b = ("".join(generator.choice(list("xyz"), generator.integers(0, 6))) for _ in range(2))
    pairs = align_tokens(a, b)
    changed = [pair for pair in pairs if None in pair or a[pair[0]] != b[pair[1]]]  # type: ignore[index]
    assert len(changed) == edits(a, b)
    for side, text in enumerate((a, b)):
        places = [pair[side] for pair in pairs if pair[side] is not None]
        assert places == list(range(len(text)))


def test_a_token_of_one_side_is_a_pair_of_its_own():
    assert align_tokens(["die", "Katze"], ["die", "alte", "Katze"]) == ((0, 0), (None, 1), (1, 2))
    assert align_tokens(["hat"], ["ist"]) == ((0, 0),)
    assert align_tokens([], ["a"]) == ((None, 0),)


def drawn(rows: str, columns: str, seed: int) -> Map:
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(columns)), len(rows)).astype(np.float32)
    return Map(rows, columns, weights, np.ones(weights.shape, bool))


def test_a_map_does_not_differ_from_itself():
    found = difference(drawn("abc", "xyz", 0), drawn("abc", "xyz", 0))
    assert (found.mean, found.most, found.distance) == (0, 0, 0)
    assert found.compared.all()


def test_rows_and_columns_of_one_side_are_never_differenced():
    first, second = drawn("abc", "xyz", 0), drawn("ac", "xyzw", 1)
    found = difference(first, second)
    assert found.rows == ((0, 0), (1, None), (2, 1))
    assert not found.compared[1].any()
    assert not found.compared[:, 3].any()
    assert (found.values[~found.compared] == 0).all()
    assert np.isnan(found.distances[1])
    assert found.values[0, 0] == pytest.approx(first.weights[0, 0] - second.weights[0, 0])
    assert found.first[1] == pytest.approx(np.append(first.weights[1], 0))


def test_the_distance_of_a_row_counts_what_only_one_side_has():
    ones = np.ones((1, 2), bool)
    first = Map("a", "xy", np.array([[0.5, 0.5]], np.float32), ones)
    second = Map("a", "xz", np.array([[0.5, 0.5]], np.float32), ones)
    replaced = difference(first, second)
    assert replaced.columns == ((0, 0), (1, 1))
    assert replaced.distances.tolist() == [0]
    longer = Map("a", "xyz", np.array([[0.5, 0, 0.5]], np.float32), np.ones((1, 3), bool))
    assert difference(first, longer).distances.tolist() == [0.5]


@pytest.mark.parametrize("seed", range(10))
def test_distances_lie_between_nothing_and_all(seed: int):
    found = difference(drawn("abcd", "xyzx", seed), drawn("abd", "xzzyx", seed + 50))
    both = found.distances[~np.isnan(found.distances)]
    assert ((both >= 0) & (both <= 1 + 1e-6)).all()
    assert found.farthest == int(np.nanargmax(found.distances))


def test_uniform_weights_share_one_among_the_visible_keys():
    mask = np.array([[True, False, False], [True, True, False], [False, False, False]])
    assert uniform_weights(mask).tolist() == [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 0]]


def test_two_known_heads_differ_in_their_known_cells(solved: Translator):
    case = CASES[solved.name]
    translation = solved.translate(case.sentence)
    views = [translation.head("cross", 0, head) for head in (0, 1)]
    found = difference(*(Map(case.target_tokens, case.source_tokens, v.weights, v.mask) for v in views))
    known = case.weights("cross", 0) - case.weights("cross", 1)
    assert found.values == pytest.approx(known, abs=0.02)
    assert found.distances == pytest.approx(np.abs(known).sum(-1) / 2, abs=0.02)


def test_an_untrained_twin_has_the_shape_and_reads_the_same_tokens(translator: Translator):
    translation = translator.translate("one two three", max_length=6)
    twin = untrained_twin(translator, 3)
    again = same_tokens(twin, translation)
    assert twin.config == translator.config
    assert again.source_tokens == translation.source_tokens
    assert again.target_tokens == translation.target_tokens
    assert again.head("cross", 1, 2).audit.passed
    assert again.model == "random, untrained twin, seed 3"
    assert not np.allclose(
        again.attention.weights("cross", 1), translation.attention.weights("cross", 1), atol=0.05
    )


def test_a_seed_means_one_twin_and_leaves_the_global_generator_alone(translator: Translator):
    import torch

    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    twins = [untrained_twin(translator, seed) for seed in (1, 1, 2)]
    assert torch.equal(torch.rand(1), expected)
    weights = [twin.model.embedding.weight for twin in twins]
    assert [torch.equal(a, b) for a, b in pairwise(weights)] == [True, False]


def test_a_cell_that_only_one_map_sees_is_compared():
    weights = np.array([[1.0, 0.0], [0.4, 0.6]], np.float32)
    causal = Map("ab", "xy", weights, np.tri(2, dtype=bool))
    lifted = Map("ab", "xy", np.full((2, 2), 0.5, np.float32), np.ones((2, 2), bool))
    for first, second in ((causal, lifted), (lifted, causal)):
        found = difference(first, second)
        assert found.compared.all()
        np.testing.assert_allclose(found.values, first.weights - second.weights)
