from __future__ import annotations

import numpy as np
import pytest

from transformer import AttentionKind, Capture, Window
from transformer.config import Sublayer
from transformer.run import NotCapturedError

TEXT = "one two three four five"
LENGTH = 9
KINDS = list(AttentionKind)


@pytest.fixture(scope="module")
def translation(translator):
    return translator.translate(TEXT, max_length=LENGTH, capture=Capture(residual=True))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_sum_to_one_and_masked_weights_are_exactly_zero(translation, kind):
    for layer in range(2):
        weights = translation.attention.weights(kind, layer)
        mask = translation.attention.mask(kind, layer)
        assert weights.dtype == np.float32
        assert weights.shape == mask.shape == translation.attention.scores(kind, layer).shape
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert (weights[~mask] == 0).all()
        assert (weights[mask] > 0).all()


def test_only_decoder_self_attention_is_causal(translation):
    for kind in KINDS:
        mask = translation.attention.mask(kind, 0, 0)
        causal = np.tri(*mask.shape, dtype=bool)
        assert (mask == (causal if kind == "decoder" else True)).all()


def test_one_head_is_that_slice_of_all_heads(translation):
    for kind in KINDS:
        for head in range(4):
            np.testing.assert_allclose(
                translation.attention.weights(kind, 1)[head],
                translation.attention.weights(kind, 1, head),
                atol=1e-6,
            )


def test_a_window_is_a_part_of_the_whole_map_and_not_a_new_softmax(translation):
    window = Window(2, 5, 1, 4)
    for kind in KINDS:
        whole, part = (translation.head(kind, 1, 2, w) for w in (None, window))
        for name in ("weights", "scores", "mask"):
            np.testing.assert_allclose(getattr(part, name), getattr(whole, name)[2:5, 1:4], atol=1e-6)
        assert part.query_tokens == whole.query_tokens[2:5]
        assert part.key_tokens == whole.key_tokens[1:4]
        assert part.audit.passed
        np.testing.assert_array_equal(part.value, whole.value[1:4])
        np.testing.assert_array_equal(part.output, whole.output[2:5])


@pytest.mark.parametrize(
    "window",
    [Window(0, 99, 0, 2), Window(0, 2, 0, 99), Window(3, 3, 0, 2), Window(-1, 2, 0, 2), Window(0, 2, 2, 1)],
)
def test_a_window_that_leaves_the_map_is_refused(translation, window):
    with pytest.raises(IndexError, match="leaves the map"):
        translation.head("cross", 0, 0, window)


@pytest.mark.parametrize(("layer", "head"), [(3, 0), (-1, 0), (0, 4), (0, -1), (99, 99)])
def test_a_layer_or_head_out_of_range_is_an_index_error(translation, layer, head):
    for read in (translation.head, translation.attention.weights, translation.attention.scores):
        with pytest.raises(IndexError, match="counted from 0"):
            read("cross", layer, head)


def test_the_encoder_has_its_own_number_of_layers(translation):
    translation.head("decoder", 2, 0)
    with pytest.raises(IndexError, match="encoder layer 2"):
        translation.head("encoder", 2, 0)


def test_labels_are_source_tokens_tokens_read_and_tokens_predicted(translation):
    encoder, decoder, cross = (translation.head(kind, 0, 0) for kind in KINDS)
    read, written, source = (
        translation.decoder_input_tokens,
        translation.target_tokens,
        translation.source_tokens,
    )
    assert (encoder.query_tokens, encoder.predicted_tokens, encoder.key_tokens) == (source, None, source)
    assert (decoder.query_tokens, decoder.predicted_tokens, decoder.key_tokens) == (read, written, read)
    assert (cross.query_tokens, cross.predicted_tokens, cross.key_tokens) == (read, written, source)
    assert read == ("<s>", *written[:-1])


def test_residuals_out_of_range_or_not_recorded_are_refused(translation, translator):
    for layer, name in ((3, "self_attention"), (-1, "feed_forward"), (0, "norm")):
        with pytest.raises(IndexError):
            translation.stream(Sublayer("decoder", layer, name))
    with pytest.raises(IndexError):
        translation.stream(Sublayer("encoder", 0, "cross_attention"))
    with pytest.raises(NotCapturedError, match="residual=True"):
        translator.translate("one", max_length=2).stream(Sublayer("encoder", 0, "feed_forward"))


def test_reading_attention_that_was_not_captured_is_one_sentence(translator):
    plain = translator.translate("one", max_length=2, capture=False)
    for read in (
        lambda: plain.head("cross", 0, 0),
        lambda: plain.trace,
    ):
        with pytest.raises(NotCapturedError, match="capture=True"):
            read()


def test_one_sentence_alone_has_no_padding(translation):
    assert translation.mask("cross", 0, 0)[0].tolist() == [True] * len(translation.source_tokens)
