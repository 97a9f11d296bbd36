"""The ready experiments: places come from what was measured of the model and from words of the sentence."""

from __future__ import annotations

import pytest
from changes import TEXT, changeable

from explorer.lenses.what_if.experiments import EXPERIMENTS, Bench, Experiment
from transformer import interventions as do
from transformer.translator import InputError

HEADS = {"default": {"cross": [1, 2]}}


def test_places_are_measured_and_a_lifted_mask_is_asked_with_the_translation_given(tokenizer):
    ready = changeable(tokenizer)
    bench, run = Bench(ready, HEADS, TEXT), ready.translate(TEXT)
    assert bench.aligner == [(1, 2)]
    best = {"aligner": {"heads": [[0, 1], [2, 3]]}}
    assert Bench(ready, HEADS | best, TEXT).aligner == [(0, 1), (2, 3)]
    assert (bench.layers("encoder"), bench.layers("cross")) == (range(2), range(3))
    assert bench.word("two") == [run.source_tokens.index("▁two")]
    with pytest.raises(InputError, match="nowhere"):
        bench.word("nowhere")
    lifted = {"lifted": (do.mask("decoder", allow="future"),)}
    for forced, target in ((True, run.text), (False, None)):
        asked = Experiment("one", "Does it?", TEXT, lambda on: lifted, "All.", forced)
        assert asked.put(ready, HEADS) == (lifted, target)


def test_there_are_ten_questions_with_names_of_their_own():
    assert len({each.name for each in EXPERIMENTS}) == len(EXPERIMENTS) == 10
    assert all(each.question.endswith("?") and each.not_proved.endswith(".") for each in EXPERIMENTS)
    assert [each.name for each in EXPERIMENTS if each.forced] == ["future"]
