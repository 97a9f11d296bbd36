"""The ready experiments: what is written down is what the model does, and the shipped file is its answers."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changes import TEXT, changeable

from lab.experiments.answers import Answer, answers, answers_of
from lab.experiments.questions import EXPERIMENTS, Bench, Experiment
from transformer import interventions as do
from transformer.runs.translator import Translator, load_translator
from transformer.runs.wording import InputError
from transformer.storage.description import read_heads
from transformer.storage.typed import typed
from transformer.what_if.random_heads import random_heads

DIRECTORY = Path(__file__).resolve().parents[3] / "assets" / "models" / "en-de"
HEADS: dict[str, Any] = {"default": {"cross": [1, 2]}}


@pytest.fixture(scope="module")
def ready(tokenizer) -> Translator:
    return changeable(tokenizer)


def asked(*changes: do.Intervention, forced: bool = False) -> Experiment:
    return Experiment("one", "Does it?", TEXT, lambda on: {"as asked": changes}, "All.", forced)


def test_an_answer_holds_both_translations_and_what_the_unchanged_one_lost(ready: Translator):
    change = do.ablate("cross", 1, 2, by="mean")
    (found,) = answers(ready, asked(change), HEADS)
    base = ready.translate(TEXT)
    forced = ready.force(TEXT, base.target_ids, interventions=[change])
    lost = np.array(forced.log_probs) - np.array(base.log_probs)
    assert found.base == base.text
    assert found.changed == ready.translate(TEXT, interventions=[change]).text
    assert found.delta == pytest.approx(lost.sum(), abs=1e-3)
    assert found.tokens == len(base.target_tokens)
    assert found.most is not None
    assert found.most.step == lost.argmin()
    assert found.most.before == pytest.approx(np.exp(base.log_probs[found.most.step]), abs=1e-5)
    assert found.most.after == pytest.approx(np.exp(forced.log_probs[found.most.step]), abs=1e-5)
    assert do.read_text(found.changes) == (change,)


def test_a_change_of_a_head_stands_beside_the_same_change_at_the_other_heads(ready: Translator):
    change = do.ablate("cross", 1, 2)
    (found,) = answers(ready, asked(change), HEADS)
    beside = random_heads(ready, TEXT, ready.translate(TEXT).target_ids, change)
    assert found.control is not None
    assert (found.control.heads, found.control.as_large) == (3, beside.as_large)
    assert found.control.lowest == pytest.approx(beside.effects.min(), abs=1e-3)
    assert found.control.highest == pytest.approx(beside.effects.max(), abs=1e-3)
    (other,) = answers(ready, asked(do.hide(1)), HEADS)
    assert other.control is None


def test_a_choice_contradicts_the_unchanged_translation_so_nothing_is_compared(ready: Translator):
    (found,) = answers(ready, asked(do.choose(0, 50)), HEADS)
    assert (found.delta, found.most) == (None, None)


def test_a_lifted_mask_is_asked_with_the_translation_given(ready: Translator):
    (found,) = answers(ready, asked(do.mask("decoder", allow="future"), forced=True), HEADS)
    assert found.changed is None
    assert found.target == found.base
    assert found.delta is not None


def test_a_file_gives_back_what_was_written(ready: Translator):
    changes = (do.ablate("cross", 0, 0), do.choose(0, 50), do.hide(0))
    for each in changes:
        for answer in answers(ready, asked(each), HEADS):
            assert typed(Answer, json.loads(json.dumps(asdict(answer)))) == answer


def test_places_come_from_what_was_measured_and_words_from_the_pieces(ready: Translator):
    base = ready.translate(TEXT)
    bench = Bench(ready, HEADS, base)
    assert bench.aligner == [(1, 2)]
    best = {"aligner": {"heads": [[0, 1], [2, 3]]}}
    assert Bench(ready, HEADS | best, base).aligner == [(0, 1), (2, 3)]
    assert bench.layers("encoder") == range(2)
    (at,) = bench.word("two")
    assert base.source_tokens[at] == "▁two"
    with pytest.raises(InputError, match="nowhere"):
        bench.word("nowhere")


def test_there_are_ten_questions_with_names_of_their_own():
    assert len({each.name for each in EXPERIMENTS}) == len(EXPERIMENTS) == 10
    assert all(each.question.endswith("?") and each.not_proved.endswith(".") for each in EXPERIMENTS)


@pytest.mark.skipif(not (DIRECTORY / "model.safetensors").exists(), reason="the bundled model is not here")
def test_what_is_shipped_is_what_the_first_model_answers():
    shipped = answers_of(DIRECTORY)
    assert list(shipped) == [each.name for each in EXPERIMENTS]
    translator, heads = load_translator(DIRECTORY), read_heads(DIRECTORY)
    assert heads is not None
    for each in EXPERIMENTS:
        for answer, kept in zip(answers(translator, each, heads), shipped[each.name], strict=True):
            assert (answer.changes, answer.base, answer.changed) == (kept.changes, kept.base, kept.changed)
            assert answer.delta == pytest.approx(kept.delta, abs=2e-3)
