from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from transformer.runs.bootstrap import (
    bleu,
    bleu_statistics,
    cell,
    compare,
    ratio,
    resamples,
    unigram_precision,
)

OUTPUTS = ["a b c d e f", "the cat sat on a mat .", "x", "so ist es , nicht wahr ?"]
REFERENCES = ["a b c d f e", "the cat sat on the mat .", "y z", "so ist das , nicht wahr ?"]


def test_bleu_of_summed_statistics_is_sacrebleu_s():
    statistics = bleu_statistics(OUTPUTS, REFERENCES)
    assert float(bleu(statistics.sum(0))) == pytest.approx(BLEU().corpus_score(OUTPUTS, [REFERENCES]).score)
    alone = bleu_statistics(["x"], ["y z"]).sum(0)
    assert float(bleu(alone)) == pytest.approx(BLEU().corpus_score(["x"], [["y z"]]).score)


def test_unigram_precision_counts_each_word_of_the_reference_once():
    statistics = bleu_statistics(["a a b"], ["b c a"])
    assert unigram_precision(statistics.sum(0)) == pytest.approx(2 / 3)


def test_a_resample_draws_as_many_sentences_as_there_are_and_repeats_for_a_seed():
    drawn = resamples(20, samples=50)
    assert drawn.shape == (50, 20)
    assert (drawn.sum(1) == 20).all()
    assert np.array_equal(drawn, resamples(20, samples=50, seed=1))
    assert not np.array_equal(drawn, resamples(20, samples=50, seed=2))
    assert drawn.mean() == 1


def test_an_interval_holds_the_middle_95_percent():
    assert cell(3.0, np.arange(1001.0)) == {"value": 3.0, "low": 25.0, "high": 975.0}


def test_differences_are_paired():
    """A model that is worse by the same amount on every sentence differs without any doubt."""
    noise = np.random.default_rng(0).normal(5, 2, 300)
    tables = {name: np.stack([noise + gap, np.ones(300)], 1) for name, gap in (("base", 0), ("worse", 0.5))}
    found = compare(tables, ratio, "base")
    assert "difference" not in found["base"]
    assert found["worse"]["difference"] == {"value": 0.5, "low": 0.5, "high": 0.5}
    assert found["base"]["value"]["high"] - found["base"]["value"]["low"] > 0.3


def test_the_interval_of_a_mean_is_about_two_standard_errors_wide_each_way():
    draws = np.random.default_rng(1).normal(0, 1, 400)
    found = compare({"one": np.stack([draws, np.ones(400)], 1)}, ratio)["one"]["value"]
    assert found["high"] - found["low"] == pytest.approx(4 * 1 / 20, rel=0.15)


def test_without_the_baseline_nothing_is_compared():
    table = np.ones((5, 2))
    assert compare({"a": table, "b": table}, ratio, "sinusoidal").keys() == {"a", "b"}
    assert "difference" not in compare({"a": table, "b": table}, ratio, "sinusoidal")["b"]
