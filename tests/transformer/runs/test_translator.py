from __future__ import annotations

import time
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
from closed_form import CASES, KNOWN

from transformer import AttentionKind, Sampling, Translation, load_translator
from transformer.audit import audit_view
from transformer.batches import run_batch, translate_all
from transformer.interventions import InterventionError
from transformer.text.typed import clean
from transformer.translator import InputError

TEXT = "one two three four five"
KINDS = list(AttentionKind)


@pytest.fixture(params=[("greedy", {}), ("beam-4", {"beam_size": 4}), ("forced", None)], ids=lambda p: p[0])
def known(request, solved):
    """A closed-form translation, made in each way, and its case."""
    case = CASES[solved.name]
    if request.param[1] is None:
        return solved.force(case.sentence, case.translation), case
    return solved.translate(case.sentence, **request.param[1]), case


def test_closed_form_models_translate_as_their_weights_say(known):
    translation, case = known
    assert translation.text == case.translation
    assert translation.source_tokens == case.source_tokens
    assert translation.target_tokens == case.target_tokens
    assert translation.decoder_input_tokens == case.decoder_input_tokens
    assert len(set(case.source_tokens)) == len(case.source_tokens) != len(case.target_tokens)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [0, 1])
def test_every_known_cell_holds_the_weight(known, kind, head):
    translation, case = known
    view = translation.head(kind, 0, head)
    keys = case.keys(kind, head)
    assert view.weights.shape == (len(keys), len(view.key_tokens)) == case.weights(kind, head).shape
    assert (view.weights[range(len(keys)), keys] > KNOWN).all()
    assert view.weights.argmax(-1).tolist() == list(keys)
    np.testing.assert_allclose(view.weights, case.weights(kind, head), atol=1 - KNOWN)
    assert view.audit.passed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [0, 1])
def test_a_transposed_map_shows_other_cells(known, kind, head):
    translation, case = known
    view, ideal = translation.head(kind, 0, head), case.weights(kind, head)
    transposed = view.weights.T
    assert transposed.shape != ideal.shape or abs(transposed - ideal).max() > KNOWN
    assert not np.array_equal(ideal, case.weights(kind, 1 - head))
    record = translation.attention.layer(kind, 0)
    assert not audit_view(replace(view, weights=transposed), record).passed


def test_the_cell_of_a_word_names_source_and_target(closed_form_models):
    translator = load_translator(closed_form_models["reverse"])
    view = translator.translate(CASES["reverse"].sentence).head("cross", 0, 0)
    row = view.predicted_tokens.index("▁drei")
    assert view.query_tokens[row] == "▁vier"
    assert view.key_tokens[int(view.weights[row].argmax())] == "▁three"


def test_a_checkpoint_gives_name_card_and_config(closed_form_models):
    translator = load_translator(closed_form_models["shift"])
    assert (translator.name, translator.config.norm, translator.heads) == ("shift", "pre", None)
    assert "by hand" in translator.card


@pytest.mark.parametrize("options", [{}, {"beam_size": 3}])
def test_forcing_a_model_s_own_output_gives_the_same_translation(solved, options):
    decoded = solved.translate(CASES[solved.name].sentence, **options)
    forced = solved.force(decoded.source_text, decoded.text)
    assert forced.target_tokens == decoded.target_tokens
    np.testing.assert_allclose(forced.log_probs, decoded.log_probs, atol=1e-5)
    for kind in KINDS:
        expected = decoded.attention.weights(kind, 0)
        np.testing.assert_allclose(forced.attention.weights(kind, 0), expected, atol=1e-5)
    for one, other in zip(forced.steps, decoded.steps, strict=True):
        assert (one.token, one.token_id) == (other.token, other.token_id)
        assert one.alternatives[0].token == other.alternatives[0].token


def test_a_forced_translation_keeps_the_probabilities_of_the_model(translator):
    forced = translator.force(TEXT, "eins zwei")
    assert forced.method == "forced"
    assert forced.target_tokens == ("▁eins", "▁zwei", "</s>")
    assert all(
        step.log_prob == log_prob for step, log_prob in zip(forced.steps, forced.log_probs, strict=True)
    )
    assert forced.steps[0].alternatives[0].log_prob >= forced.log_probs[0]
    assert forced.attention.audit().passed


def test_tokens_are_shifted_by_one_between_reading_and_writing(translator):
    translation = translator.translate(TEXT, max_length=7)
    assert translation.source_tokens == ("▁one", "▁two", "▁three", "▁four", "▁five", "</s>")
    assert translation.decoder_input_tokens == ("<s>", *translation.target_tokens[:-1])
    assert len(translation.target_tokens) == len(translation.log_probs) == len(translation.steps) == 7
    assert tuple(step.token for step in translation.steps) == translation.target_tokens


def test_each_step_of_greedy_search_is_its_first_alternative(translator):
    for step in translator.translate(TEXT, max_length=7).steps:
        best = step.alternatives[0]
        assert (best.token, best.token_id, best.log_prob) == (step.token, step.token_id, step.log_prob)
        assert len(step.alternatives) == 10
        assert step.parent == 0


@pytest.mark.parametrize("options", [{}, {"beam_size": 4}, {"sample": Sampling(seed=3, top_k=5)}])
def test_streaming_yields_steps_and_then_the_same_translation(translator, options):
    *steps, streamed = translator.stream(TEXT, max_length=7, **options)
    translated = translator.translate(TEXT, max_length=7, **options)
    assert isinstance(streamed, Translation)
    assert len(steps) == 7
    assert (streamed.steps, streamed.text, streamed.method) == (
        translated.steps,
        translated.text,
        translated.method,
    )
    if "beam_size" not in options:
        assert tuple(steps) == streamed.steps


def test_the_method_names_the_way_of_decoding(translator):
    methods = [
        translator.translate("one", max_length=1, **options).method
        for options in ({}, {"beam_size": 4}, {"sample": Sampling(seed=7)})
    ]
    assert methods == ["greedy", "beam-4", "sample-7"]


def test_a_translation_cannot_be_changed(translator):
    translation = translator.translate("one", max_length=1)
    with pytest.raises(FrozenInstanceError):
        translation.text = "two"
    with pytest.raises(FrozenInstanceError):
        translation.head("cross", 0, 0).weights = None


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_batch_translates_as_its_texts_do_alone(translator, beam_size):
    texts = ["one", TEXT, "Ünïcode 😀", "nine ten"]
    together = translate_all(translator, texts, beam_size=beam_size)
    alone = [translator.translate(text, beam_size=beam_size, capture=False).text for text in texts]
    assert together == alone
    assert translate_all(translator, []) == []


def test_closed_form_models_translate_a_batch(solved):
    case = CASES[solved.name]
    assert translate_all(solved, [case.sentence, "one two three"])[0] == case.translation


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\x00\x01", "\u2028", "\u3000", "\x1b"])
def test_a_text_of_nothing_is_refused(translator, text):
    with pytest.raises(InputError, match="The text is empty"):
        translator.translate(text)
    with pytest.raises(InputError, match="The translation is empty"):
        translator.force("one", text)
    with pytest.raises(InputError, match="The text is empty"):
        run_batch(translator, ["one", text])
    with pytest.raises(InputError, match="The text is empty"):
        translate_all(translator, [text])


def test_ten_thousand_words_are_refused_quickly_with_their_number(translator):
    start = time.process_time()
    with pytest.raises(InputError, match=r"10,001 tokens.*1,024"):
        translator.translate(" ".join(["one"] * 10_000))
    assert time.process_time() - start < 5


def test_a_text_may_have_1024_tokens_with_its_end_and_no_more(translator):
    assert len(translator.ids(" ".join(["one"] * 1023))) == 1023
    with pytest.raises(InputError, match="1,025 tokens"):
        translator.ids(" ".join(["one"] * 1024))


@pytest.mark.parametrize(
    "text",
    [
        "\ud800",
        "lone \udc00 surrogate",
        "<script>alert(1)</script>",
        "</s> <s> <pad> <unk> <0x41>",
        "\u202eright to left\u202c",
        "مرحبا ‏שלום",
        "👩‍👩‍👧‍👦 🏳️‍🌈",
        "$\\frac{1}{2}$ **bold** %{x}",
        "\ufeffone",
        "a\u0301\u0302\u0303\u0304\u0305",
        "▁▁",
    ],
)
def test_strange_texts_translate_without_special_ids(translator, text):
    translation = translator.translate(text, max_length=3)
    assert not {0, 1, 2, 3} & set(translator.ids(text))
    assert translation.source_tokens[-1] == "</s>"
    assert translation.attention.audit().passed
    translation.source_text.encode("utf-8")
    translation.text.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  a \n b\t", "a b"),
        ("a\x00b\x7fc", "a b c"),
        ("e\u0301", "é"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("😀", "😀"),
    ],
)
def test_a_text_is_cleaned_before_it_is_read(text, cleaned):
    assert clean(text) == cleaned
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize("max_length", [0, -1, 2049])
def test_a_length_limit_out_of_range_is_refused(translator, max_length):
    with pytest.raises(ValueError, match=rf"max_length is {max_length}; .* from 1 to 2,048"):
        translator.translate("one", max_length=max_length)


@pytest.mark.parametrize("beam_size", [0, -4, 65])
def test_a_beam_size_out_of_range_is_refused(translator, beam_size):
    with pytest.raises(ValueError, match=rf"beam_size is {beam_size}; .* from 1 to 64"):
        translator.translate("one", beam_size=beam_size)


def test_an_option_that_does_not_exist_here_is_refused(translator):
    with pytest.raises(TypeError, match="no option beem"):
        translator.translate("one", beem=2)
    with pytest.raises(TypeError, match="no option beam_size"):
        translator.force("one", "two", beam_size=2)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"beam_size": 2.5}, "beam_size is 2.5; it must be a whole number from 1 to 64"),
        ({"beam_size": True}, "beam_size is True"),
        ({"max_length": 5.5}, "max_length is 5.5; it must be a whole number from 1 to 2,048"),
        ({"max_length": "5"}, "max_length is '5'"),
        ({"capture": 5}, "capture is 5; it must be True, False or a Capture"),
        ({"hooks": {"logits": 3}}, "The hook at 'logits' is no function"),
        (
            {"hooks": {"encoder.input": lambda v, first: v.double()}},
            "float64 on cpu; it must keep strided float32",
        ),
    ],
)
def test_an_option_of_another_kind_is_refused_in_one_sentence(translator, options, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        translator.translate("one", **options)


@pytest.mark.parametrize("ids", [[-1, 2], [5, -1], [1.5, 2], [True, 2], [10**9, 2]])
def test_an_output_of_ids_that_do_not_exist_is_refused(translator, ids):
    with pytest.raises(InterventionError, match="there is no id"):
        translator.force("one", ids)


def test_what_is_no_text_is_refused(translator):
    with pytest.raises(TypeError, match="The text is NoneType; it must be a string"):
        translator.translate(None)
    with pytest.raises(TypeError, match="a source needs its translation"):
        translator.force("one")


def test_sampling_with_a_beam_is_refused(translator):
    with pytest.raises(ValueError, match="beam_size=1"):
        translator.translate("one", beam_size=2, sample=Sampling())


def test_the_limit_counts_target_tokens_and_defaults_to_half_more_than_the_source(translator):
    assert len(translator.translate(TEXT, max_length=1).target_tokens) == 1
    assert len(translator.translate(TEXT).target_tokens) <= int(1.5 * 6) + 10


def test_a_cut_translation_and_a_long_text_are_noted(translator, solved):
    cut = translator.translate("one", max_length=2)
    assert cut.target_tokens[-1] != "</s>"
    assert any("cut at 2 tokens" in note for note in cut.notes)
    long = translator.translate(" ".join(["one"] * 30), max_length=1)
    assert any("longer than any text in this model's training" in note for note in long.notes)
    assert solved.translate(CASES[solved.name].sentence).notes == ()


def test_a_text_longer_than_the_model_s_positions_is_refused(solved):
    with pytest.raises(ValueError, match=r"65 tokens; shorten it to at most 64"):
        solved.translate(" ".join(["one"] * 64))


def test_translating_leaves_no_gradient_and_no_trace_on_the_model(translator):
    assert not translator.model.training
    translator.translate(TEXT, max_length=3)
    assert all(parameter.grad is None for parameter in translator.model.parameters())
    assert not torch.is_inference_mode_enabled()


def test_what_a_view_hands_out_cannot_be_written_into_the_shared_trace(translator):
    translation = translator.translate("one two")
    view = translation.head("cross", 0, 0)
    for array in (view.query, view.value, view.output):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_beam_streams_no_step_that_no_hypothesis_took(translator):
    *steps, translation = translator.stream("one two three", beam_size=3, max_length=4)
    assert translation.target_tokens
    assert all(step.log_prob > -100 for step in steps)
