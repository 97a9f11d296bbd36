from __future__ import annotations

import pytest
import torch
from closed_form import CASES

from explorer.lenses.what_if.averages import Averager
from transformer import load_translator

PAIRS = [("one two", "eins zwei drei"), ("three", None), ("one " * 2000, "eins")]


def test_a_mean_is_over_all_rows_of_all_sentences_that_can_be_read(translator):
    averager = Averager(translator, PAIRS)
    assert list(averager.run()) == [1, 2, 3]
    assert averager.total == 3
    assert averager.read == 2
    means = averager.means({"data": "two"})
    runs = [translator.force("one two", "eins zwei drei"), translator.translate("three")]
    for kind, outputs in means.outputs.items():
        for layer in range(len(outputs)):
            rows = torch.cat([run.attention.layer(kind, layer).output for run in runs], dim=1)
            torch.testing.assert_close(outputs[layer], rows.mean(1))
    assert means.about == {"data": "two"}


def test_the_means_so_far_are_there_while_sentences_are_read(closed_form_models):
    translator = load_translator(closed_form_models["copy"])
    averager = Averager(translator, [(CASES["copy"].sentence, None)] * 3)
    with pytest.raises(ValueError, match="No sentence"):
        averager.means({})
    next(averager.run())
    first = averager.means({}).outputs["cross"]
    assert averager.read == 1
    assert first.shape == (1, 2, 64)
