"""BART models against transformers' own, on checkpoints made here."""

from __future__ import annotations

from typing import Any

import pytest
from bart_models import bart_ids, bart_reference, write_bart
from parity import Pair, check_beam, check_greedy

from transformer import load_translator
from transformer.batches import forced_log_probs
from transformer.exports.npz import load_trace, save_trace
from transformer.sampling import Sampling
from transformer.text.pairs import SentencePair

TEXT = "summarize the old house and the two dogs ran over the hills while birds sang ."
TARGET = "two dogs ran over the hills"


@pytest.fixture(scope="module")
def bart(tmp_path_factory):
    return load_translator(write_bart(tmp_path_factory.mktemp("bart")))


def test_a_given_output_is_scored_with_the_start_before_it(bart):
    forced = bart.force(TEXT, TARGET)
    assert forced.target_tokens[0] == "<s>"
    assert forced.text == TARGET
    (scored,) = forced_log_probs(bart, [SentencePair(TEXT, TARGET)])
    assert scored == pytest.approx(forced.log_probs, abs=1e-4)


RULES: dict[str, dict[str, Any]] = {
    "summary": {"min_length": 12, "no_repeat_ngram_size": 3, "length_penalty": 2.0, "early_stopping": True},
    "new tokens": {"min_new_tokens": 8, "no_repeat_ngram_size": 2},
    "every token once": {"no_repeat_ngram_size": 1},
    "as long as it may be": {"min_length": 20},
}


@pytest.mark.parametrize("name", RULES)
def test_rules_of_summaries_are_kept_as_the_reference_keeps_them(tmp_path, name):
    directory = write_bart(tmp_path, generation=RULES[name], seed=4)
    ids = tuple(bart_ids(directory, TEXT))
    pair = Pair(load_translator(directory), bart_reference(directory), TEXT, ids, 2, 0)
    ours = check_greedy(pair)
    check_beam(pair)
    assert len(ours.steps) > RULES[name].get("min_length", 2) - 2
    drawn = pair.translator.translate(TEXT, sample=Sampling(seed=1), beam_size=1)
    for step in (*ours.steps, *drawn.steps):
        assert step.forced == step.alternatives[0].excluded
        assert step.token_id not in [each.token_id for each in step.alternatives if each.excluded]
    assert any("keeps rules of its own: no " in note for note in ours.notes)
    save_trace(ours, tmp_path / "trace.npz", pair.translator.model)
    assert load_trace(tmp_path / "trace.npz").steps == ours.steps
