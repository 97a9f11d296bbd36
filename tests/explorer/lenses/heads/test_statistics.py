from __future__ import annotations

import numpy as np
import pytest
from closed_form import CASES

from explorer.lenses.heads.measures import STATISTICS
from explorer.lenses.heads.statistics import Keys, content_pieces, row_statistics, sentence_totals
from explorer.lenses.words.function_words import ENGLISH
from transformer.config import AttentionKind
from transformer.translator import Translator

SEEN = np.ones((3, 4), dtype=bool)
TOKENS = ("▁the", ",", "▁cat", "</s>")
NONE = float("nan")


def peaked(columns: list[int], keys: int = 4) -> np.ndarray:
    weights = np.zeros((1, len(columns), keys), dtype=np.float32)
    weights[0, range(len(columns)), columns] = 1
    return weights


@pytest.mark.parametrize(
    ("columns", "name", "expected"),
    [
        ([0, 1, 2], "same", [1, 1, 1]),
        ([3, 0, 1], "previous", [NONE, 1, 1]),
        ([1, 2, 3], "next", [1, 1, 1]),
        ([0, 0, 3], "first", [1, 1, 0]),
        ([2, 2, 3], "last", [1, 1, 0]),
        ([3, 0, 1], "previous_mass", [NONE, 1, 1]),
        ([0, 3, 1], "same_mass", [1, 0, 0]),
        ([1, 2, 0], "next_mass", [1, 1, 0]),
        ([0, 2, 0], "first_mass", [1, 0, 1]),
        ([3, 3, 0], "eos_mass", [1, 1, 0]),
        ([3, 3, 0], "special_mass", [1, 1, 0]),
        ([1, 1, 2], "punctuation_mass", [1, 1, 0]),
        ([2, 0, 3], "content_mass", [1, 0, 0]),
        ([2, 0, 3], "content_chance", [0.25, 0.25, 0.25]),
        ([3, 1, 0], "mean_distance", [3, 0, 2]),
        ([3, 1, 0], "entropy", [0, 0, 0]),
        ([3, 1, 0], "peak", [1, 1, 1]),
    ],
)
def test_a_pattern_is_recognised(columns: list[int], name: str, expected: list[float]) -> None:
    found = row_statistics(peaked(columns), SEEN, Keys.of(TOKENS, own=False))[name][0]
    assert found == pytest.approx(expected, nan_ok=True)


def test_even_weights_have_entropy_one_over_the_visible_keys() -> None:
    mask = np.tril(np.ones((3, 3), dtype=bool))
    weights = (mask / mask.sum(-1, keepdims=True))[None].astype(np.float32)
    entropy = row_statistics(weights, mask, Keys.of(("<s>", "▁a", "▁b"), own=True))["entropy"][0]
    assert np.isnan(entropy[0])
    assert entropy[1:] == pytest.approx(1)


def test_under_a_causal_mask_nothing_is_next_or_last() -> None:
    mask = np.tril(np.ones((3, 3), dtype=bool))
    found = row_statistics(peaked([0, 0, 1], 3), mask, Keys.of(("<s>", "▁a", "▁b"), own=True))
    assert np.isnan(found["next"]).all()
    assert "last" not in found
    assert found["previous"][0] == pytest.approx([NONE, 1, 1], nan_ok=True)


def test_the_pieces_of_a_word_belong_together() -> None:
    mask = np.ones((3, 3), dtype=bool)
    found = row_statistics(peaked([1, 0, 0], 3), mask, Keys.of(("▁mou", "se", "</s>"), own=True))
    assert found["same_word"][0].tolist() == [1, 1, 0]


def test_content_words_are_neither_function_words_nor_punctuation_nor_marks() -> None:
    tokens = ("▁The", "▁ti", "red", ".", "▁don", "'", "t", "▁7", "</s>")
    content = [token for token, found in zip(tokens, content_pieces(tokens, ENGLISH), strict=True) if found]
    assert content == ["▁ti", "red", "▁7"]


def test_every_statistic_has_a_definition(translator: Translator) -> None:
    traced = translator.force("one two three", "eins zwei")
    found = {name for kind in AttentionKind for name in sentence_totals(traced, kind).sums}
    assert found | {"contribution"} == {statistic.name for statistic in STATISTICS}


def test_known_heads_have_known_statistics(solved: Translator) -> None:
    case = CASES[solved.name]
    traced = solved.translate(case.sentence)
    for kind in AttentionKind:
        means = sentence_totals(traced, kind).means()
        for head in range(2):
            weights = case.weights(kind, head)
            rows = range(1 if kind is AttentionKind.DECODER else 0, len(weights))
            shares = np.mean([weights[row, row - 1] for row in rows if row >= 1 and row <= weights.shape[1]])
            assert means["previous"][0, head] == pytest.approx(shares)
            distance = np.mean([abs(row - weights[row].argmax()) for row in rows])
            assert means["mean_distance"][0, head] == pytest.approx(distance, abs=0.1)
