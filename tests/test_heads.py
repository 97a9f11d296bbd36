from __future__ import annotations

import numpy as np
import pytest

from transformer.alignment import GoldPair
from transformer.capture import AttentionKind
from transformer.heads import CrossAlignments, choose_head, is_punctuation, measure_heads, row_statistics
from transformer.translator import Translator

SEEN = np.ones((3, 4), dtype=bool)
KEYS = ("▁a", ",", "▁b", "</s>")


def peaked(columns: list[int], keys: int = 4) -> np.ndarray:
    weights = np.zeros((1, len(columns), keys), dtype=np.float32)
    weights[0, range(len(columns)), columns] = 1
    return weights


@pytest.mark.parametrize(
    ("columns", "name", "expected"),
    [
        ([0, 1, 2], "same", [1, 1, 1]),
        ([3, 0, 1], "previous", [0, 1, 1]),
        ([1, 2, 3], "next", [1, 1, 1]),
        ([0, 0, 3], "first", [1, 1, 0]),
        ([3, 3, 0], "eos_mass", [1, 1, 0]),
        ([1, 1, 2], "punctuation_mass", [1, 1, 0]),
        ([3, 1, 0], "mean_distance", [3, 0, 2]),
        ([3, 1, 0], "entropy", [0, 0, 0]),
    ],
)
def test_a_pattern_is_recognised(columns: list[int], name: str, expected: list[float]) -> None:
    assert row_statistics(peaked(columns), SEEN, KEYS)[name][0].tolist() == expected


def test_even_weights_have_entropy_one_over_the_visible_keys() -> None:
    mask = np.tril(np.ones((3, 3), dtype=bool))
    weights = (mask / mask.sum(-1, keepdims=True))[None].astype(np.float32)
    entropy = row_statistics(weights, mask, ("<s>", "▁a", "▁b"))["entropy"][0]
    assert entropy[1:] == pytest.approx(1)


def test_punctuation_has_no_letter_or_digit() -> None:
    assert [is_punctuation(piece) for piece in ("▁,", "...", "▁a", "7", "</s>", "▁")] == [
        True,
        True,
        False,
        False,
        False,
        True,
    ]


def test_rows_that_see_one_key_are_left_out(translator: Translator) -> None:
    measured = measure_heads(translator.config, [translator.translate("one", max_length=1)])
    assert all(head["first"] == 0 for layer in measured["heads"]["decoder"] for head in layer)


def test_every_head_of_every_kind_is_measured(translator: Translator) -> None:
    traced = translator.force("one two three", "eins zwei")
    gold = GoldPair(("one", "two", "three"), ("eins", "zwei"), frozenset({(0, 0)}), frozenset({(0, 0)}))
    measured = measure_heads(translator.config, [traced], [(traced, gold)])
    config = translator.config
    for kind, depth in (("encoder", 2), ("decoder", 3), ("cross", 3)):
        grid = measured["heads"][kind]
        assert (len(grid), len(grid[0])) == (depth, config.n_heads)
        layer, head = measured["default"][kind]
        assert 0 <= layer < depth
        assert 0 <= head < config.n_heads
    names = {"previous", "same", "next", "first", "entropy", "eos_mass", "punctuation_mass", "mean_distance"}
    assert set(measured["heads"]["encoder"][0][0]) == names
    assert set(measured["heads"]["cross"][0][0]) == names | {"aer", "aer_read"}


def test_statistics_are_those_of_the_maps(translator: Translator) -> None:
    traced = translator.force("one two three", "eins zwei")
    measured = measure_heads(translator.config, [traced])
    weights = traced.head(AttentionKind.ENCODER, 1, 2).weights
    found = measured["heads"]["encoder"][1][2]
    assert found["eos_mass"] == pytest.approx(float(weights[:, -1].mean()), abs=1e-4)
    assert found["first"] == pytest.approx(float((weights.argmax(-1) == 0).mean()), abs=1e-4)


def test_alignments_of_a_model_that_copies_are_perfect(solved: Translator) -> None:
    if solved.name != "copy":
        pytest.skip("only the model that copies in order has a known alignment")
    traced = solved.force("one two three", "eins zwei drei")
    sure = frozenset({(0, 0), (1, 1), (2, 2)})
    gold = GoldPair(("one", "two", "three"), ("eins", "zwei", "drei"), sure, sure)
    collected = CrossAlignments(solved.config.n_decoder_layers, solved.config.n_heads)
    collected.add(traced, gold)
    assert collected.scores(reading=False)[0][0].aer == 0
    assert collected.scores(reading=True)[0][0].aer > 0


def test_the_best_aligner_opens_first_but_never_a_head_at_rest() -> None:
    grid = [[{"aer": 0.5}, {"aer": 0.2, "eos_mass": 0.8}], [{"aer": 0.3}, {"aer": 0.4}]]
    assert choose_head(grid) == (1, 0)


def test_without_alignments_the_clearest_neighbour_pattern_opens_first() -> None:
    grid = [
        [{"previous": 0.2, "next": 0.1}, {"previous": 0.9, "first": 0.7}],
        [{"previous": 0.1, "next": 0.6}],
    ]
    assert choose_head(grid) == (1, 0)


def test_a_translation_without_capture_cannot_be_measured(translator: Translator) -> None:
    with pytest.raises(ValueError, match="capture=True"):
        measure_heads(translator.config, [translator.translate("one", capture=False)])
