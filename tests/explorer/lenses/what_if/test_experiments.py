"""The ready experiments: places come from what was measured of the model and from words of the sentence."""

from __future__ import annotations

from typing import Any

import pytest
from changes import TEXT, changeable

from explorer.lenses.what_if.experiments import EXPERIMENTS, Bench, Experiment
from transformer import interventions as do
from transformer.translator import InputError, Translator

HEADS: dict[str, Any] = {"default": {"cross": [1, 2]}}


@pytest.fixture(scope="module")
def ready(tokenizer) -> Translator:
    return changeable(tokenizer)


@pytest.mark.parametrize("forced", [True, False])
def test_a_lifted_mask_is_asked_with_the_translation_given(ready: Translator, forced: bool):
    lifted = {"lifted": (do.mask("decoder", allow="future"),)}
    asked = Experiment("one", "Does it?", TEXT, lambda on: lifted, "All.", forced)
    assert asked.put(ready, HEADS) == (lifted, ready.translate(TEXT).text if forced else None)


def test_places_come_from_what_was_measured_and_words_from_the_pieces(ready: Translator):
    bench = Bench(ready, HEADS, TEXT)
    assert bench.aligner == [(1, 2)]
    best = {"aligner": {"heads": [[0, 1], [2, 3]]}}
    assert Bench(ready, HEADS | best, TEXT).aligner == [(0, 1), (2, 3)]
    assert bench.layers("encoder") == range(2)
    (at,) = bench.word("two")
    assert ready.translate(TEXT).source_tokens[at] == "▁two"
    with pytest.raises(InputError, match="nowhere"):
        bench.word("nowhere")


def test_there_are_ten_questions_with_names_of_their_own():
    assert len({each.name for each in EXPERIMENTS}) == len(EXPERIMENTS) == 10
    assert all(each.question.endswith("?") and each.not_proved.endswith(".") for each in EXPERIMENTS)
