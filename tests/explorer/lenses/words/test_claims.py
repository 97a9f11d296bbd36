from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from closed_form import CASES

from explorer.lenses.words.claims import ClaimHead, heads_that_show, shared_heads
from transformer.config import AttentionKind
from transformer.translator import Translator


def test_the_head_that_follows_a_word_is_found_and_no_other(solved: Translator):
    case = CASES[solved.name]
    run = solved.translate(case.sentence)
    for head in (0, 1):
        key = case.keys("cross", head)[1]
        source = case.source_tokens[key].removeprefix("▁")
        found = heads_that_show(run, case.translation.split()[1], source, 0.5)
        assert (0, head) in [(each.layer, each.head) for each in found]
        assert all(case.keys("cross", each.head)[1] == key for each in found)
        assert found[0].weight > 0.98


@pytest.mark.parametrize(
    ("target", "source", "least"), [("Haus", "one", 0), ("eins", "house", 0), ("eins", "one", 1.1)]
)
def test_without_the_words_or_the_weight_no_head_shows_it(solved: Translator, target, source, least):
    assert heads_that_show(solved.translate(CASES[solved.name].sentence), target, source, least) == []


def test_claims_share_a_head_wherever_one_shows_them():
    a, b, c = ClaimHead(0, 1, 0.9), ClaimHead(2, 3, 0.7), ClaimHead(1, 1, 0.8)
    assert shared_heads([[a, b], [b], [], [c]]) == [b, b, None, c]
    assert shared_heads([]) == []


@pytest.mark.parametrize(("most", "shown"), [(1, True), (2, True), (0, False), (3, False)])
def test_any_piece_of_the_source_word_may_have_the_largest_weight(most: int, shown: bool):
    weights = np.full((1, 1, 4), 0.1)
    weights[0, 0, most] = 0.7
    run = SimpleNamespace(
        target_tokens=("▁um",),
        source_tokens=("▁a", "▁wood", "pecker", "</s>"),
        config=SimpleNamespace(sites={AttentionKind.CROSS: SimpleNamespace(n_layers=1)}),
        attention=SimpleNamespace(weights=lambda kind, layer: weights),
    )
    assert bool(heads_that_show(run, "um", "woodpecker", 0.5)) == shown
