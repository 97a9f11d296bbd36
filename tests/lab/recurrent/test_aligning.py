from __future__ import annotations

import pytest
from random_models import random_recurrent

from lab.recurrent.aligning import alignment_errors, counts, error
from lenses.words.alignment import score
from lenses.words.gold_links import align_gold
from transformer.runs.translator import Translator
from transformer.text.links import GoldPair

GOLD = (
    GoldPair(("one", "two"), ("two", "one"), frozenset({(0, 1)}), frozenset({(0, 1), (1, 0)})),
    GoldPair(("three", "four"), ("three", "four"), frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1)})),
)


@pytest.fixture(scope="module")
def twins(tokenizer, translator):
    model = random_recurrent("additive", vocab_size=tokenizer.vocab_size)
    return {"additive": Translator(model, tokenizer, name="additive"), "sinusoidal": translator}


def test_the_error_of_summed_counts_is_that_of_all_pairs_together():
    links = [frozenset({(0, 1), (1, 0)}), frozenset({(0, 1)})]
    assert error(counts(links, GOLD).sum(0)) == pytest.approx(score(links, GOLD).aer)


def test_each_model_is_measured_by_both_rows_with_its_best_head(twins):
    found = alignment_errors(twins, GOLD, "sinusoidal")
    assert found["pairs"] == 2
    for rows in ("predicted", "read"):
        assert found[rows]["additive"]["heads"] == 1
        assert found[rows]["sinusoidal"]["heads"] == 12
        grid = align_gold(twins["sinusoidal"], GOLD).scores(rows)
        least = min(each.aer for heads in grid for each in heads)
        assert found[rows]["sinusoidal"]["error"]["value"]["value"] == pytest.approx(least, abs=1e-4)
        assert "difference" in found[rows]["additive"]["error"]
