from __future__ import annotations

import math

import pytest
import torch

from transformer.encodings import BiasRule, alibi_slopes, bias_rule, t5_buckets

HEADS, LENGTH, D_HEAD = 4, 9, 6
ROWS, COLUMNS = torch.tensor([2, 5, 8]), torch.arange(LENGTH)


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def rules():
    return [
        BiasRule("alibi", alibi_slopes(HEADS).float()),
        BiasRule("t5", normal(HEADS, 2 * 4 + 1)),
        BiasRule("shaw", normal(HEADS, 2 * 4 + 1, D_HEAD)),
    ]


EACH_RULE = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)


def test_slopes_are_the_paper_s():
    assert alibi_slopes(8).tolist() == [2.0**-k for k in range(1, 9)]
    assert alibi_slopes(16)[:2].tolist() == pytest.approx([2**-0.5, 2**-1])
    between = alibi_slopes(6).tolist()
    assert between == pytest.approx([2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3])
    assert alibi_slopes(1).tolist() == [2**-8]


def test_the_alibi_bias_falls_by_the_slope_with_every_token_of_distance():
    bias = BiasRule("alibi", alibi_slopes(HEADS)).scores(normal(HEADS, 3, D_HEAD), ROWS, COLUMNS)
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        for row, i in enumerate(ROWS.tolist()):
            for j in range(LENGTH):
                assert bias[head, row, j].item() == -slope * abs(i - j)


def bucket(distance, causal):
    """T5's bucket in whole numbers: the logarithmic steps as powers, so that no rounding decides an edge."""
    count, start = (32, 0) if causal else (16, 16 if distance > 0 else 0)
    back = max(0, -distance) if causal else abs(distance)
    exact = count // 2
    if back < exact:
        return start + back
    steps, width = count - exact, 128 // exact
    step = max(k for k in range(steps + 1) if back**steps >= exact**steps * width**k)
    return start + exact + min(step, steps - 1)


@pytest.mark.parametrize("causal", [True, False])
def test_buckets_are_t5_s_at_every_distance(causal):
    distances = range(-300, 301)
    expected = [bucket(distance, causal) for distance in distances]
    assert t5_buckets(torch.tensor(distances), causal=causal).tolist() == expected


def test_edges_of_the_buckets():
    def at(distances, causal):
        return t5_buckets(torch.tensor(distances), causal=causal).tolist()

    assert at([0, -1, -7, -8, -11, -12, -16, -127, -128, -9999], False) == [0, 1, 7, 8, 8, 9, 10, 15, 15, 15]
    assert at([1, 7, 8, 16, 128], False) == [17, 23, 24, 26, 31]
    assert at([5, 0, -15, -16, -128, -9999], True) == [0, 0, 15, 16, 31, 31]


@pytest.mark.parametrize("causal", [True, False])
def test_buckets_equal_those_of_transformers(causal):
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    distances = torch.arange(-300, 301)
    expected = t5.T5Attention._relative_position_bucket(distances, bidirectional=not causal)
    assert torch.equal(t5_buckets(distances, causal=causal), expected)


def test_a_distance_rule_reads_its_table_and_keeps_the_last_value_beyond_it():
    table = normal(HEADS, 2 * 4 + 1)
    bias = BiasRule("t5", table).scores(normal(HEADS, 3, D_HEAD), ROWS, COLUMNS)
    for row, i in enumerate(ROWS.tolist()):
        for j in range(LENGTH):
            assert torch.equal(bias[:, row, j], table[:, min(max(j - i, -4), 4) + 4])


def test_relative_keys_add_the_query_times_the_vector_of_the_distance():
    vectors, query = normal(HEADS, 2 * 4 + 1, D_HEAD), normal(2, HEADS, 3, D_HEAD)
    bias = BiasRule("shaw", vectors).scores(query, ROWS, COLUMNS)
    assert bias.shape == (2, HEADS, 3, LENGTH)
    for head in range(HEADS):
        for row, i in enumerate(ROWS.tolist()):
            for j in range(LENGTH):
                vector = vectors[head, min(max(j - i, -4), 4) + 4]
                expected = query[1, head, row] @ vector / math.sqrt(D_HEAD)
                torch.testing.assert_close(bias[1, head, row, j], expected)


@EACH_RULE
def test_some_heads_rows_and_columns_are_the_same_as_all_cut_down(rule):
    query = normal(HEADS, LENGTH, D_HEAD)
    whole = rule.scores(query, torch.arange(LENGTH), COLUMNS)
    torch.testing.assert_close(rule.scores(query[2, ROWS], ROWS, COLUMNS[3:7], 2), whole[2, ROWS, 3:7])
    several = rule.scores(query[1:3, ROWS], ROWS, COLUMNS, slice(1, 3))
    torch.testing.assert_close(several, whole[1:3, ROWS])


@EACH_RULE
def test_a_table_of_another_shape_is_refused(rule):
    assert bias_rule(rule.name, rule.table, HEADS, D_HEAD).table is rule.table
    cut = rule.table[:, :-1] if rule.table.dim() > 1 else rule.table[:1]
    for wrong in (torch.zeros(()), rule.table[:2], rule.table[None], cut):
        with pytest.raises(ValueError, match=rule.name):
            bias_rule(rule.name, wrong, HEADS, D_HEAD)


def test_an_unknown_rule_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'unknown'.*alibi.* shaw, t5"):
        bias_rule("unknown", torch.zeros(HEADS), HEADS, D_HEAD)
