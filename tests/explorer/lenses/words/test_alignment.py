from __future__ import annotations

import numpy as np
import pytest
from closed_form import CASES

from explorer.lenses.words.alignment import (
    attention_links,
    diagonal,
    link_words,
    merge_words,
    score,
    text_words,
    word_weights,
)
from explorer.lenses.words.groups import reading_groups
from explorer.lenses.words.links import GoldPair, Links
from transformer.text.words import word_groups
from transformer.translator import Translator

SOURCE = ("▁a", "▁b", "b", "▁c", "</s>")
TARGET = ("▁x", "x", "▁y", "</s>")
WORD_GROUPS = tuple(text_words(word_groups(tokens)) for tokens in (SOURCE, TARGET))


def gold(sure: set[tuple[int, int]], possible: set[tuple[int, int]] = frozenset()) -> GoldPair:  # type: ignore[assignment]
    return GoldPair(("a", "b", "c"), ("x", "y"), frozenset(sure), frozenset(sure | possible))


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
    assert attention_links(weights, *WORD_GROUPS, rows="predicted") == [{(2, 0), (0, 1)}]


def test_the_row_that_reads_a_word_is_one_later() -> None:
    weights = peaked([4, 3, 3, 0])  # rows read <s> ▁x x ▁y
    assert attention_links(weights, *WORD_GROUPS, rows="read") == [{(2, 0), (0, 1)}]


def test_attention_on_the_end_of_the_source_links_nothing_to_it() -> None:
    weights = peaked([4, 4, 4, 4])
    weights[0, :, 1] = 0.02
    assert attention_links(weights, *WORD_GROUPS, rows="predicted") == [{(1, 0), (1, 1)}]


WORDS = np.array([[[0.6, 0.3, 0.1], [0.5, 0.1, 0.4], [0.0, 0.0, 0.0]]], dtype=np.float32)


def test_mutual_links_are_those_that_both_directions_choose() -> None:
    assert link_words(WORDS) == [{(0, 0), (0, 1)}]
    assert link_words(WORDS, "mutual") == [{(0, 0)}]


def test_a_threshold_links_every_pair_that_reaches_it() -> None:
    assert link_words(WORDS, "above", 0.4) == [{(0, 0), (0, 1), (2, 1)}]
    assert link_words(WORDS, "above", 0.0) == [{(i, j) for i in range(3) for j in range(2)}]


def test_the_last_word_of_a_cut_translation_has_no_row_that_reads_it() -> None:
    groups = word_groups(("▁x", "▁y"))
    weights = np.array([[[0.9, 0.1], [0.2, 0.8]]], dtype=np.float32)
    merged = word_weights(weights, word_groups(("▁a", "▁b")), groups, rows="read")
    assert merged.tolist() == [[weights[0, 1].tolist(), [0, 0]]]
    assert link_words(merged) == [{(1, 0)}]


def drawn(seed: int) -> tuple[Links, GoldPair]:
    """Random links over 5 x 4 words: some found, some sure, some possible."""
    generator = np.random.default_rng(seed)
    cells = [(i, j) for i in range(5) for j in range(4)]
    found, sure, possible = (
        frozenset(cell for cell in cells if generator.random() < share) for share in (0.3, 0.2, 0.2)
    )
    return found, GoldPair(("a",) * 5, ("x",) * 4, sure, sure | possible)


@pytest.mark.parametrize("seed", range(30))
def test_scores_follow_their_definition(seed: int) -> None:
    found, pair = drawn(seed)
    sure = sum(link in found for link in pair.sure)
    possible = sum(link in pair.possible for link in found)
    scored = score([found], [pair])
    if found and pair.sure:
        assert scored.aer == pytest.approx(1 - (sure + possible) / (len(found) + len(pair.sure)))
        assert scored.precision == pytest.approx(possible / len(found))
        assert scored.recall == pytest.approx(sure / len(pair.sure))
    assert 0 <= scored.aer <= 1


BOTH = {(0, 0), (1, 1)}
HAND_COUNTED = {
    # what is found, sure, possible besides: AER, precision, recall, counted on paper
    "all sure links, nothing else": (BOTH, BOTH, set(), 0, 1, 1),
    "a possible link more costs nothing": (BOTH | {(2, 1)}, BOTH, {(2, 1)}, 0, 1, 1),
    "a possible link left out costs nothing": (BOTH, BOTH, {(2, 1)}, 0, 1, 1),
    "a wrong link more": (BOTH | {(2, 0)}, BOTH, {(2, 1)}, 1 - 4 / 5, 2 / 3, 1),
    "a sure link left out": ({(0, 0)}, BOTH, {(2, 1)}, 1 - 2 / 3, 1, 1 / 2),
    "possible links only": ({(2, 1)}, BOTH, {(2, 1)}, 1 - 1 / 3, 1, 0),
    "nothing right": ({(2, 0)}, BOTH, {(2, 1)}, 1, 0, 0),
    "nothing found": (set(), BOTH, {(2, 1)}, 1, 0, 0),
}


@pytest.mark.parametrize(
    ("found", "sure", "possible", "aer", "precision", "recall"), HAND_COUNTED.values(), ids=HAND_COUNTED
)
def test_small_cases_counted_by_hand(
    found: set[tuple[int, int]],
    sure: set[tuple[int, int]],
    possible: set[tuple[int, int]],
    aer: float,
    precision: float,
    recall: float,
) -> None:
    scored = score([frozenset(found)], [gold(sure, possible)])
    assert (scored.aer, scored.precision, scored.recall) == pytest.approx((aer, precision, recall))


@pytest.mark.parametrize("seed", range(20))
def test_a_wrong_link_never_helps_and_a_sure_one_never_harms(seed: int) -> None:
    found, pair = drawn(seed)
    before = score([found], [pair]).aer
    for link in {(i, j) for i in range(5) for j in range(4)} - found:
        after = score([found | {link}], [pair]).aer
        if link in pair.sure:
            assert after <= before + 1e-12
        elif link not in pair.possible:
            assert after >= before - 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_the_error_over_many_pairs_is_that_of_their_links_together(seed: int) -> None:
    texts = [drawn(10 * seed + i) for i in range(4)]
    together = score([found for found, _ in texts], [pair for _, pair in texts])

    def shifted(links: Links, by: int) -> set[tuple[int, int]]:
        return {(i + 5 * by, j + 4 * by) for i, j in links}

    found = frozenset().union(*(shifted(each, i) for i, (each, _) in enumerate(texts)))
    sure, possible = (
        frozenset().union(*(shifted(getattr(pair, kind), i) for i, (_, pair) in enumerate(texts)))
        for kind in ("sure", "possible")
    )
    assert score([found], [GoldPair(("a",) * 20, ("x",) * 16, sure, possible)]) == together


@pytest.mark.parametrize("seed", range(10))
def test_with_sure_links_only_the_error_is_one_less_f(seed: int) -> None:
    found, pair = drawn(seed)
    scored = score([found], [GoldPair(pair.source, pair.target, pair.sure, pair.sure)])
    both = scored.precision + scored.recall
    f = 2 * scored.precision * scored.recall / both if both else 0
    assert scored.aer == pytest.approx(1 - f)


@pytest.mark.parametrize("seed", range(10))
def test_merging_keeps_the_sum_of_rows_and_the_links_of_single_pieces(seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(5), size=(2, 4)).astype(np.float32)
    merged = merge_words(weights, word_groups(TARGET), word_groups(SOURCE))
    assert merged.sum(-1) == pytest.approx(1)
    single = [f"▁{i}" for i in range(5)], [f"▁{i}" for i in range(4)]
    alone = word_weights(weights, word_groups(single[0]), word_groups(single[1]), rows="predicted")
    assert (alone == weights).all()


@pytest.mark.parametrize("rule", ["strongest", "mutual", "above"])
def test_the_head_that_translates_has_no_error_against_its_known_links(solved: Translator, rule: str) -> None:
    case = CASES[solved.name]
    translation = solved.translate(case.sentence)
    source, target = (text_words(reading_groups(t)) for t in (case.source_tokens, case.target_tokens))
    assert translation.attention is not None
    weights = translation.attention.weights("cross", 0)
    links = link_words(word_weights(weights, source, target, rows="predicted"), rule, 0.5)  # type: ignore[arg-type]
    known = frozenset((key, row) for row, key in enumerate(case.keys("cross", 0)[: len(target)]))
    pair = GoldPair(("",) * len(source), ("",) * len(target), known, known)
    assert score([links[0]], [pair]).aer == 0
    assert score([links[1]], [pair]).aer > 0
