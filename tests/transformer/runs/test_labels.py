from __future__ import annotations

import pytest

from transformer import AttentionKind
from transformer.batches import run_batch

KINDS = list(AttentionKind)
TEXT = "one two three"


@pytest.fixture(scope="module", params=["alone", "in a batch"])
def run(request, translator):
    if request.param == "alone":
        return translator.translate(TEXT)
    return run_batch(translator, [TEXT, "one two three four five six"])[0]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_as_many_as_rows_and_columns_of_every_layer(run, kind):
    labels = run.labels(kind)
    for record in run.attention.layers[kind]:
        assert record.shape[1:] == (len(labels.queries), len(labels.keys))
    assert labels.predicted is None or len(labels.predicted) == len(labels.queries)


def test_encoder_rows_read_the_source_and_predict_nothing(run):
    labels = run.labels("encoder")
    assert labels.queries == labels.keys == run.source_tokens
    assert labels.predicted is None


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_decoder_rows_read_one_token_and_predict_the_next(run, kind):
    labels = run.labels(kind)
    assert labels.queries == run.decoder_input_tokens
    assert labels.predicted == run.target_tokens


def test_the_decoder_looks_at_what_it_read_and_cross_attention_at_the_source(run):
    assert run.labels("decoder").keys == run.decoder_input_tokens
    assert run.labels("cross").keys == run.source_tokens


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_carries_the_labels_of_its_kind(run, kind):
    view, labels = run.head(kind, 0, 0), run.labels(kind)
    assert (view.query_tokens, view.key_tokens) == (labels.queries, labels.keys)
    assert view.predicted_tokens == labels.predicted


def test_labels_of_an_unknown_kind_are_refused(run):
    with pytest.raises(ValueError, match="sideways"):
        run.labels("sideways")


def test_each_side_of_a_translation_reads_its_own_tokens(translator):
    translation = translator.translate(TEXT)
    assert translation.tokens("encoder") == translation.source_tokens
    assert translation.tokens("decoder") == translation.decoder_input_tokens
