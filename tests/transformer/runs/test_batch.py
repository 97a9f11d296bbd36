from __future__ import annotations

import numpy as np
import pytest
from closed_form import CASES

from transformer.batches import run_batch
from transformer.translator import Translator, retrace

TEXT = "nine ten eight one two three"


@pytest.fixture(scope="module")
def entries(translator: Translator):
    return run_batch(translator, ["one two", TEXT])


def test_every_sentence_is_filled_up_to_the_longest(translator: Translator, entries):
    for entry, text in zip(entries, ("one two", TEXT), strict=True):
        alone = translator.translate(text)
        n_source, n_target = len(alone.source_tokens), len(alone.target_tokens)
        assert entry.source_tokens[:n_source] == alone.source_tokens
        assert set(entry.source_tokens[n_source:]) <= {"<pad>"}
        assert entry.target_tokens[:n_target] == alone.target_tokens
        assert entry.decoder_input_tokens[:n_target] == alone.decoder_input_tokens
        assert set(entry.target_tokens[n_target:]) <= {"<pad>"}
        assert entry.mask("cross", 0, 0)[0].tolist() == [token != "<pad>" for token in entry.source_tokens]
        assert (entry.text, entry.target_ids, entry.log_probs) == (
            alone.text,
            alone.target_ids,
            pytest.approx(alone.log_probs, abs=1e-4),
        )


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_each_sees_what_it_sees_alone_and_nothing_of_the_padding(translator: Translator, entries, kind: str):
    for entry, text in zip(entries, ("one two", TEXT), strict=True):
        alone = translator.translate(text).head(kind, 1, 2)
        rows, keys = alone.weights.shape
        view = entry.head(kind, 1, 2)
        assert view.audit.passed
        np.testing.assert_allclose(view.weights[:rows, :keys], alone.weights, atol=1e-5)
        assert (view.weights[~view.mask] == 0).all()
        if kind != "decoder":
            assert not view.mask[:, keys:].any()


def test_the_decoder_runs_under_the_causal_mask_alone(entries):
    view = entries[0].head("decoder", 0, 0)
    assert (view.mask == np.tri(len(view.query_tokens), dtype=bool)).all()


def test_the_proof_holds_the_recorded_pass_against_what_was_decoded(entries):
    report = entries[0].attention.audit()
    assert report.passed
    assert "log-probabilities" in {check.name for check in report.checks}


def test_closed_form_models_keep_their_attention_in_a_batch(solved: Translator):
    case = CASES[solved.name]
    short = run_batch(solved, [case.sentence + " eight nine ten", case.sentence])[1]
    for kind in ("encoder", "decoder", "cross"):
        for head in (0, 1):
            rows = case.keys(kind, head)
            weights = short.head(kind, 0, head).weights
            assert all(weights[row, key] > 0.99 for row, key in enumerate(rows))


def test_a_run_of_a_batch_is_traced_again_without_its_padding(translator: Translator, entries):
    shortest = min(entries, key=lambda entry: len(entry.steps))
    again = retrace(translator, shortest)
    assert len(again.source_tokens) < len(shortest.source_tokens)
    assert again.attention.audit().passed
    assert again.head("cross", 0, 0).audit.passed


def test_a_batch_of_no_texts_is_empty(translator: Translator):
    assert run_batch(translator, []) == ()
