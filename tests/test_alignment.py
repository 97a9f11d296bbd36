from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from transformer.alignment import (
    GoldPair,
    attention_links,
    diagonal,
    link_words,
    merge_words,
    read_gold,
    score,
)
from transformer.data import DataError
from transformer.words import word_groups

SOURCE = ("▁a", "▁b", "b", "▁c", "</s>")
TARGET = ("▁x", "x", "▁y", "</s>")


def gold(sure: set[tuple[int, int]], possible: set[tuple[int, int]] = frozenset()) -> GoldPair:  # type: ignore[assignment]
    return GoldPair(("a", "b", "c"), ("x", "y"), frozenset(sure), frozenset(sure | possible))


def test_sure_and_possible_links_are_read(tmp_path: Path) -> None:
    (tmp_path / "gold.tsv").write_text("a b c\tx y\t0-0 2p1\n", encoding="utf-8")
    assert read_gold(tmp_path / "gold.tsv") == [gold({(0, 0)}, {(2, 1)})]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\tb", "found 2 columns"),
        ("a\tb\t0:0", "'0:0' is no link"),
        ("a\tb\t0-1", "leaves the sentence"),
        ("\tb\t0-0", "source is empty"),
    ],
)
def test_a_bad_gold_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "gold.tsv").write_text(f"a b\tc\t1-0\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"gold\.tsv:2: .*{message}"):
        read_gold(tmp_path / "gold.tsv")


def test_error_rate_counted_by_hand() -> None:
    # A = {00, 11, 21}, S = {00, 20}, P = S + {11}: |A∩S| = 1, |A∩P| = 2, |A| = 3, |S| = 2
    found = score([frozenset({(0, 0), (1, 1), (2, 1)})], [gold({(0, 0), (2, 0)}, {(1, 1)})])
    assert found.aer == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == pytest.approx(1 / 2)
    assert found.links == 3


def test_error_rate_is_counted_over_all_pairs_together() -> None:
    # first pair: all right (1 of 1); second: 0 of 1 found, 2 sure
    found = score([frozenset({(0, 0)}), frozenset({(2, 1)})], [gold({(0, 0)}), gold({(0, 0), (1, 1)})])
    assert found.aer == pytest.approx(1 - (1 + 1) / (2 + 3))


def test_the_sure_links_themselves_have_no_error() -> None:
    pair = gold({(0, 0), (2, 1)}, {(1, 1)})
    assert score([pair.sure], [pair]).aer == 0


def test_as_many_alignments_as_pairs_are_needed() -> None:
    with pytest.raises(ValueError, match="argument"):
        score([], [gold({(0, 0)})])


def test_the_diagonal_links_relative_places() -> None:
    assert diagonal(GoldPair(("a",) * 4, ("x",) * 2, frozenset(), frozenset())) == {(1, 0), (3, 1)}
    assert diagonal(gold(set())) == {(0, 0), (2, 1)}


def test_merged_words_sum_over_keys_and_average_over_queries() -> None:
    weights = np.array(
        [[0.1, 0.2, 0.3, 0.4, 0.0], [0.5, 0.1, 0.1, 0.1, 0.2], [0, 0, 0, 0, 1]], dtype=np.float32
    )
    merged = merge_words(weights, word_groups(TARGET[:3]), word_groups(SOURCE))
    assert merged == pytest.approx(np.array([[0.3, 0.35, 0.25, 0.1], [0, 0, 0, 1]]))
    assert merged.sum(-1) == pytest.approx(1)


def test_each_target_word_takes_its_strongest_source_word() -> None:
    weights = np.array([[[0.1, 0.7, 0.2], [0.6, 0.3, 0.1]]], dtype=np.float32)
    assert link_words(weights) == [{(1, 0), (0, 1)}]


def peaked(columns: list[int]) -> np.ndarray:
    weights = np.full((1, len(columns), len(SOURCE)), 0.01, dtype=np.float32)
    weights[0, range(len(columns)), columns] = 0.96
    return weights


def test_the_row_that_predicts_a_word_decides_its_link() -> None:
    weights = peaked([3, 3, 0, 4])  # rows predict ▁x x ▁y </s>
    assert attention_links(weights, SOURCE, TARGET, reading=False) == [{(2, 0), (0, 1)}]


def test_the_row_that_reads_a_word_is_one_later() -> None:
    weights = peaked([4, 3, 3, 0])  # rows read <s> ▁x x ▁y
    assert attention_links(weights, SOURCE, TARGET, reading=True) == [{(2, 0), (0, 1)}]


def test_attention_on_the_end_of_the_source_links_nothing_to_it() -> None:
    weights = peaked([4, 4, 4, 4])
    weights[0, :, 1] = 0.02
    assert attention_links(weights, SOURCE, TARGET, reading=False) == [{(1, 0), (1, 1)}]
