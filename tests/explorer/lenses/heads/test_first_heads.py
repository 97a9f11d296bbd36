from __future__ import annotations

import pytest
from closed_form import CASES

from explorer.lenses.heads.first_heads import choose_head, grid, kind_totals, measure_heads
from explorer.lenses.heads.measures import STATISTICS
from explorer.lenses.heads.statistics import sentence_totals
from explorer.lenses.words.alignment import attention_links, score
from explorer.lenses.words.gold_links import ERRORS, CrossAlignments, align_gold
from explorer.lenses.words.links import GoldPair
from transformer.config import AttentionKind
from transformer.translator import Translator


def test_rows_that_see_one_key_are_left_out(translator: Translator) -> None:
    measured = measure_heads([kind_totals(translator.translate("one", max_length=1))])
    assert all("first" not in head for layer in measured["heads"]["decoder"] for head in layer)


def test_every_head_of_every_kind_is_measured(translator: Translator) -> None:
    traced = translator.force("one two three", "eins zwei")
    gold = GoldPair(("one", "two", "three"), ("eins", "zwei"), frozenset({(0, 0)}), frozenset({(0, 0)}))
    measured = measure_heads([kind_totals(traced)], align_gold(translator, [gold]))
    config = translator.config
    for kind, depth in (("encoder", 2), ("decoder", 3), ("cross", 3)):
        grid = measured["heads"][kind]
        assert (len(grid), len(grid[0])) == (depth, config.n_heads)
        layer, head = measured["default"][kind]
        assert 0 <= layer < depth
        assert 0 <= head < config.n_heads
    names = {statistic.name for statistic in STATISTICS} - {"contribution"}
    assert set(measured["heads"]["encoder"][0][0]) == names
    assert set(measured["heads"]["decoder"][0][0]) == names - {"next", "next_mass", "last"}
    assert set(measured["heads"]["cross"][0][0]) == names - {"same_word"} | {
        "aer",
        "aer_read",
        "aer_diagonal",
    }


def test_one_sentence_alone_has_the_statistics_of_a_sample_of_one(translator: Translator) -> None:
    traced = translator.force("one two three", "eins zwei")
    sample = measure_heads([kind_totals(traced, translator.model.output_projection)])
    projections = translator.model.output_projection
    found = {kind.value: grid(sentence_totals(traced, kind, projections)) for kind in AttentionKind}
    assert found == sample["heads"]
    assert found["cross"][2][3]["contribution"] > 0


def test_alignments_of_a_model_that_copies_are_perfect(solved: Translator) -> None:
    if solved.name != "copy":
        pytest.skip("only the model that copies in order has a known alignment")
    sure = frozenset({(0, 0), (1, 1), (2, 2)})
    gold = GoldPair(("one", "two", "three"), ("eins", "zwei", "drei"), sure, sure)
    collected = CrossAlignments(solved.config)
    collected.add(solved, gold)
    assert collected.scores("predicted")[0][0].aer == 0
    assert collected.scores("read")[0][0].aer > 0


def test_the_best_aligner_is_the_head_that_translates(solved: Translator) -> None:
    case = CASES[solved.name]
    keys = case.keys("cross", 0)[:-1]
    links = frozenset((int(key), row) for row, key in enumerate(keys))
    gold = GoldPair(tuple(case.sentence.split()), tuple(case.translation.split()), links, links)
    traced = solved.force(case.sentence, case.translation)
    found = measure_heads([kind_totals(traced)], align_gold(solved, [gold]))
    assert found["aligner"] == {"heads": ((0, 0),), "rows": "predicted", "aer": 0}
    assert "aligner" not in measure_heads([kind_totals(traced)])


def test_a_mean_over_heads_is_scored_like_a_head(translator: Translator) -> None:
    traced = translator.force("one two three", "eins zwei drei")
    sure = frozenset({(0, 0), (1, 1), (2, 2)})
    gold = GoldPair(("one", "two", "three"), ("eins", "zwei", "drei"), sure, sure)
    collected = CrossAlignments(translator.config)
    collected.add(translator, gold)
    best, error = collected.best()
    weights = best.weights(traced)[None]
    words = translator.cut("one two three").groups(), translator.cut("eins zwei drei", "target").groups()
    (links,) = attention_links(weights, *words, rows="predicted")
    assert score([links], [gold]).aer == error
    assert error <= min(
        each.aer for rows in ERRORS.values() for layer in collected.scores(rows) for each in layer
    )


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
        kind_totals(translator.translate("one", capture=False))
