"""Runs of models that translate: known cells, batches, what a run gives, what is refused or
noted."""

import json
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from closed_form import CASES, KNOWN
from random_models import random_language_model, random_model

from transformer import (
    AttentionKind,
    Capture,
    Sampling,
    Translation,
    Translator,
    Window,
    batches,
    requests,
)
from transformer.__main__ import main
from transformer.audit import audit_view
from transformer.batches import forced_log_probs, hypotheses, run_batch, translate_all
from transformer.config import Sublayer
from transformer.decoding import SearchRules
from transformer.interventions import InterventionError
from transformer.reader import InputError
from transformer.requests import LEFT_OUT, unread_limit
from transformer.run import NotCapturedError
from transformer.text.pairs import SentencePair
from transformer.translator import load_translator

TEXT = "one two three four five"
KINDS = list(AttentionKind)
ASSETS = Path(__file__).resolve().parents[3] / "assets"
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beam-4": {"beam_size": 4},
    "sample-3": {"sample": Sampling(seed=3, top_k=5)},
}


@pytest.mark.parametrize("way", ["greedy", "beam-4", "forced"])
def test_every_cell_of_a_closed_form_model_holds_its_weight(solved, way):
    case = CASES[solved.name]
    if way == "forced":
        run = solved.force(case.sentence, case.translation)
    else:
        run = solved.translate(case.sentence, **WAYS[way])
    assert (run.text, run.method, run.notes) == (case.translation, way, ())
    assert (run.source_tokens, run.target_tokens) == (case.source_tokens, case.target_tokens)
    assert run.decoder_input_tokens == case.decoder_input_tokens
    assert (solved.config.norm, "by hand" in solved.card, solved.heads) == (case.norm, True, None)
    for kind in KINDS:
        record = run.attention.layer(kind, 0)
        for head in (0, 1):
            view = run.head(kind, 0, head)
            ideal = case.weights(kind, head)
            assert (
                view.weights.shape == (len(view.query_tokens), len(view.key_tokens)) == ideal.shape
            )
            np.testing.assert_allclose(view.weights, ideal, atol=1 - KNOWN)
            assert view.audit.passed
            assert not np.array_equal(ideal, case.weights(kind, 1 - head))
            assert not audit_view(replace(view, weights=view.weights.T), record).passed


@pytest.mark.parametrize("method", WAYS)
def test_a_stream_yields_steps_and_then_the_same_translation(translator, method):
    *steps, streamed = translator.stream(TEXT, max_length=7, **WAYS[method])
    run = translator.translate(TEXT, max_length=7, **WAYS[method])
    assert (streamed.steps, streamed.text, streamed.method) == (run.steps, run.text, method)
    assert len(steps) == 7
    assert all(step.log_prob > -100 for step in steps), "steps that no hypothesis took"
    if method != "beam-4":
        assert tuple(steps) == streamed.steps


@pytest.fixture(scope="module")
def run(translator) -> Translation:
    return translator.translate(TEXT, max_length=9, capture=Capture(residual=True))


def test_a_window_is_a_part_of_the_whole_map_and_not_a_new_softmax(run):
    for kind in KINDS:
        whole, part = (run.head(kind, 1, 2, window) for window in (None, Window(2, 5, 1, 4)))
        for name in ("weights", "scores", "mask"):
            np.testing.assert_allclose(
                getattr(part, name), getattr(whole, name)[2:5, 1:4], atol=1e-6
            )
        assert (part.query_tokens, part.key_tokens) == (
            whole.query_tokens[2:5],
            whole.key_tokens[1:4],
        )
        assert part.audit.passed
        np.testing.assert_array_equal(part.value, whole.value[1:4])
        np.testing.assert_array_equal(part.output, whole.output[2:5])
        for array in (part.query, part.value, part.output):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


def test_what_a_run_does_not_have_is_an_error(run):
    assert run.head("decoder", 2, 0).layer == 2
    for at in ((0, 10, 0, 2), (0, 2, 0, 7), (3, 3, 0, 2), (-1, 2, 0, 2), (0, 2, 2, 1)):
        with pytest.raises(IndexError, match="leaves the map"):
            run.head("cross", 0, 0, Window(*at))
    for kind, *at in (
        ("cross", 3, 0),
        ("cross", -1, 0),
        ("cross", 0, 4),
        ("cross", 0, -1),
        ("encoder", 2, 0),
    ):
        for read in (run.head, run.attention.weights, run.attention.map):
            with pytest.raises(IndexError, match=r"counted from 0|encoder layer 2"):
                read(kind, *at)
    for place in (("decoder", 3, "self_attention"), ("encoder", 0, "cross_attention")):
        with pytest.raises(IndexError, match="layers count from 0"):
            run.stream(Sublayer(*place))


def test_what_was_not_recorded_is_one_sentence(translator):
    plain = translator.translate("one", max_length=2, capture=False)
    for read in (lambda: plain.head("cross", 0, 0), lambda: plain.trace):
        with pytest.raises(NotCapturedError, match="capture=True"):
            read()
    with pytest.raises(NotCapturedError, match="residual=True"):
        translator.translate("one", max_length=2).stream(Sublayer("encoder", 0, "feed_forward"))


MANY = ["one two three", "four", "nine ten one two six", "Ünïcode 😀", "two"]


@pytest.mark.parametrize(("beam_size", "positions"), [(1, 4096), (3, 4096), (1, 8)])
def test_many_texts_give_what_each_gives_alone_in_their_order(
    translator, monkeypatch, beam_size, positions
):
    monkeypatch.setattr(batches, "BATCH_POSITIONS", positions)
    alone = [translator.translate(text, beam_size=beam_size, capture=False) for text in MANY]
    assert translate_all(translator, MANY, beam_size) == [run.text for run in alone]
    for output, run in zip(hypotheses(translator, MANY, beam_size), alone, strict=True):
        assert output.token_ids == run.target_ids
        np.testing.assert_allclose(output.log_probs, run.log_probs, atol=1e-4)
    assert (
        translate_all(translator, []),
        run_batch(translator, []),
        hypotheses(translator, []),
    ) == (
        [],
        (),
        [],
    )


@pytest.mark.parametrize(
    "text", ["\ud800", "</s> <s> <pad> <unk> <0x41>", "\u202eright to left\u202c", "▁▁"]
)
def test_strange_texts_translate_without_special_ids(translator, text):
    run = translator.translate(text, max_length=3)
    assert not {0, 1, 2, 3} & set(translator.ids(text))
    assert run.source_tokens[-1] == "</s>"
    assert run.attention.audit().passed
    assert run.source_text.encode() + run.text.encode()


@pytest.mark.parametrize("text", ["", "\n\t ", "\x00\x01"])
def test_a_text_of_nothing_is_refused(translator, text):
    with pytest.raises(InputError, match="The translation is empty"):
        translator.force("one", text)
    with pytest.raises(InputError, match="The translation is empty"):
        forced_log_probs(translator, [SentencePair("one", text)])
    for use in (
        translator.translate,
        lambda t: run_batch(translator, ["one", t]),
        lambda t: translate_all(translator, [t]),
    ):
        with pytest.raises(InputError, match="The text is empty"):
            use(text)


def words(count: int) -> str:
    return " ".join(["one"] * count)


WHOLE = "it must be a whole number from"
REFUSED: list[tuple[dict[str, Any], Any, str]] = [
    ({"text": words(10_000)}, InputError, r"10,001 tokens.*1,024"),
    ({"text": words(1024)}, InputError, "1,025 tokens; shorten it to at most 1,024"),
    ({"text": None}, TypeError, "The text is NoneType; it must be a string"),
    *(
        ({"max_length": n}, ValueError, rf"length is {n!r}; {WHOLE} 1 to 2,048")
        for n in (0, 2049, 5.5)
    ),
    *(({"beam_size": n}, ValueError, rf"beam_size is {n}; {WHOLE} 1 to 64") for n in (0, 65, True)),
    ({"beam_size": 3, "length_penalty": -101.0}, ValueError, "length_penalty"),
    ({"beam_size": 3, "length_offset": -1}, ValueError, "length_offset"),
    ({"beam_size": 2, "sample": Sampling()}, ValueError, "beam_size=1"),
    ({"beam_size": 1, "sample": Sampling(), "tree": True}, ValueError, "no tree"),
    ({"beem": 2}, TypeError, "no option beem"),
    ({"capture": 5}, TypeError, "capture is 5; it must be True, False or a Capture"),
    ({"hooks": {"logits": 3}}, ValueError, "The hook at 'logits' is no function"),
    (
        {"hooks": {"encoder.input": lambda v, first: v.double()}},
        (TypeError, ValueError),
        "float64 on cpu; it",
    ),
    ({"target": "two", "beam_size": 2}, TypeError, "no option beam_size"),
    ({"target": None}, TypeError, "a source needs its translation"),
    ({"target": []}, InputError, "The translation is empty; give it at least one token"),
    ({"target": ["nowhere to be found"]}, InterventionError, "no token"),
    *(
        ({"target": ids}, InterventionError, "no id")
        for ids in ([5, -1], [1.5, 2], [True, 2], [302, 2])
    ),
]


@pytest.mark.parametrize(("options", "error", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_translated_is_refused_in_one_sentence(translator, options, error, sentence):
    started = time.process_time()
    texts = [options.get("text", "one")]
    texts += [options["target"]] if "target" in options else []
    rest = {name: value for name, value in options.items() if name not in ("text", "target")}
    with pytest.raises(error, match=sentence) as caught:
        (translator.force if texts[1:] else translator.translate)(*texts, **rest)
    assert "\n" not in str(caught.value)
    assert time.process_time() - started < 5


def test_limits_are_counted_in_tokens_and_what_is_cut_or_long_is_noted(translator, solved):
    longest = translator.translate(words(1023), max_length=3).head(
        "encoder", 0, 0, Window(1000, 1024, 0, 64)
    )
    assert (longest.weights.shape, longest.audit.passed) == ((24, 64), True)
    with pytest.raises(ValueError, match=r"65 tokens; shorten it to at most 64"):
        solved.translate(words(64))
    cut = translator.translate("one", max_length=2)
    assert (len(cut.target_tokens), cut.target_tokens[-1] == "</s>") == (2, False)
    assert cut.notes == ("The output was cut at 2 tokens, so it is incomplete.",)
    assert len(translator.translate(TEXT).target_tokens) <= int(1.5 * 6) + 10
    longer = "This text has {} tokens: longer than any text in this model's training (30)."
    assert longer.format(31) in translator.translate(words(30), max_length=1).notes
    assert longer.format(30) not in translator.translate(words(29), max_length=1).notes
    assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize("beam_size", [1, 3])
def test_padding_that_was_most_probable_and_never_written_is_noted(tokenizer, beam_size):
    model = random_model(vocab_size=tokenizer.vocab_size, output_bias=True)
    with torch.no_grad():
        model.output_bias[model.config.pad_id] = 50
    barred = SearchRules(forbidden=((model.config.pad_id,),))
    reader = Translator(model, tokenizer, name="padding", rules=barred)
    run = reader.translate("one two", beam_size=beam_size, max_length=3)
    said = (
        "the model found <pad> most probable; padding is never written, so the next best token "
        "stands there."
    )
    steps = len(run.steps)
    assert f"At {steps} step{'s' * (steps > 1)} {said}" in run.notes
    assert not any("<pad>" in note for note in reader.force("one two", run.text or "one").notes)
    continued = Translator(
        random_language_model(vocab_size=tokenizer.vocab_size), tokenizer, rules=barred
    ).generate("one two", max_length=4, hooks={"logits": lambda logits, _: _padded(logits)})
    assert continued.notes[-1] == f"At {len(continued.steps) - continued.n_given} steps {said}"
    free = Translator(model, tokenizer, name="padding").translate(
        "one two", beam_size=1, max_length=3
    )
    assert not any("most probable" in note for note in free.notes)


def _padded(logits: torch.Tensor) -> torch.Tensor:
    """The logits, with padding most probable."""
    logits[..., random_language_model().config.pad_id] += 50
    return logits


COLOURS = (
    "red",
    "blue",
    "green",
    "small",
    "big",
    "young",
    "dark",
    "bright",
    "warm",
    "cold",
    "quiet",
    "loud",
)
TWELVE = " ".join(f"The {each} house is old and the {each} cat sleeps in it." for each in COLOURS)


@cache
def bundled(name: str) -> Translator:
    return load_translator(ASSETS / "models" / name)


def test_a_text_that_leaves_out_two_thirds_says_so_and_by_sentences_it_is_whole(monkeypatch):
    lengths = []
    monkeypatch.setattr(
        requests, "unread_limit", lambda *each: lengths.append(each) or unread_limit(*each)
    )
    for capture in (True, False):
        run = bundled("en-pt").translate(TWELVE, capture=capture)
        assert (run.text.count("."), LEFT_OUT in run.notes) == (4, True)
        assert lengths.pop() == (len(run.source_tokens) - 1, len(run.target_ids) - 1)
    whole = bundled("en-pt").translate_text(TWELVE, capture=False)
    assert [run.source_text for run in whole.runs] == [
        f"{each}." for each in TWELVE.rstrip(".").split(". ")
    ]
    assert (whole.text, whole.notes) == (" ".join(run.text for run in whole.runs), ())
    noted = bundled("en-pt").translate_text("I am here. She sleeps.", max_length=2, capture=False)
    cut = "The output was cut at 2 tokens, so it is incomplete."
    assert noted.notes == (f"Sentence 1: {cut}", f"Sentence 2: {cut}")


@pytest.mark.parametrize(
    ("read", "written", "unread", "named"),
    [
        (5, 1, 1.0, False),  # too few to say anything
        (6, 2, 0.0, True),
        (10, 4, 0.0, True),
        (10, 5, 0.0, False),  # half of the length alone is not enough
        (10, 7, 0.1, True),
        (10, 7, 0.09, False),
        (10, 8, 0.1, False),
        (10, 15, 0.2, True),  # a loop
        (10, 15, 0.19, False),
    ],
)
def test_length_and_what_is_read_decide_together(read, written, unread, named):
    assert (unread >= unread_limit(read, written)) == named


@pytest.mark.parametrize(("written", "passes"), [(7, 2), (8, 1), (14, 1), (15, 2)])
def test_without_a_trace_only_an_unusual_length_asks_for_a_pass_more(
    translator, monkeypatch, written, passes
):
    made = []
    replayed = requests.Request.replayed
    monkeypatch.setattr(
        requests.Request, "replayed", lambda *each: made.append(1) or replayed(*each)
    )
    run = translator.force(words(10), words(written), capture=False)
    assert (len(run.source_tokens), len(run.target_ids), len(made)) == (11, written + 1, passes)


def test_one_line_in_is_one_line_out(capsys, tmp_path):
    two = "I am here. She sleeps."
    command = ["translate", "--model", str(ASSETS / "models" / "en-pt")]
    assert main([*command, two, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["text"], printed["source_tokens"].count("</s>")) == (
        "Eu estou aqui. Ela dorme.",
        2,
    )
    (tmp_path / "in.tsv").write_text(f"{two}\tx\n\n{TWELVE}\n", encoding="utf-8")
    for more, count in (([], 12), (["--no-split"], 4)):
        output = tmp_path / f"{count}.tsv"
        assert (
            main([*command, "--file", str(tmp_path / "in.tsv"), "--output", str(output), *more])
            == 0
        )
        lines = output.read_text(encoding="utf-8").splitlines()
        assert lines[:2] == [f"{two}\tEu estou aqui. Ela dorme.", "\t"]
        assert lines[2].partition("\t")[2].count(".") == count
        assert (LEFT_OUT in capsys.readouterr().err) == (count < 12)
