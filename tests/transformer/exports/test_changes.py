from __future__ import annotations

import io
import json

import numpy as np
import pytest
from changes import EVERY, INSIDE, TEXT, changeable

from transformer import interventions as do
from transformer.audit import TOKENS
from transformer.exports.npz import load_trace, save_trace
from transformer.exports.record import TraceFileError
from transformer.stream import STREAM


@pytest.fixture(scope="module")
def translator(tokenizer):
    return changeable(tokenizer, norm="pre")


def file_of(run, model=None) -> io.BytesIO:
    file = io.BytesIO()
    save_trace(run, file, model)
    file.seek(0)
    return file


@pytest.mark.parametrize("name", EVERY)
def test_a_changed_run_is_saved_opened_and_proved_again(translator, name):
    run = translator.translate(TEXT, max_length=6, interventions=[EVERY[name]])
    opened = load_trace(file_of(run, translator.model))
    assert opened.interventions == run.interventions
    report = opened.attention.audit()
    assert report.passed, report
    assert report.imported
    assert report.changes == (str(EVERY[name]),)
    for kind, layer in run.attention.places:
        np.testing.assert_array_equal(
            opened.attention.weights(kind, layer), run.attention.weights(kind, layer)
        )
        np.testing.assert_array_equal(opened.attention.mask(kind, layer), run.attention.mask(kind, layer))
        np.testing.assert_array_equal(opened.attention.scores(kind, layer), run.attention.scores(kind, layer))
    again = load_trace(file_of(opened))
    assert again.attention.audit().passed
    assert again.interventions == run.interventions


def test_lifted_cells_survive_the_file(translator):
    lifted = do.mask("decoder", allow="next")
    run = translator.force(TEXT, tuple(range(40, 46)), interventions=[lifted])
    opened = load_trace(file_of(run))
    assert opened.attention.audit().passed
    assert (opened.head("decoder", 0, 0).mask == np.tri(6, k=1, dtype=bool)).all()


def rewritten(file: io.BytesIO, change) -> io.BytesIO:
    with np.load(file, allow_pickle=False) as held:
        arrays = dict(held)
    meta = json.loads(arrays["meta"].tobytes())
    change(arrays, meta)
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    found = io.BytesIO()
    np.savez(found, allow_pickle=False, **arrays)
    found.seek(0)
    return found


def without_changes(arrays, meta):
    meta["run"]["interventions"] = []


@pytest.mark.parametrize("name", INSIDE)
def test_a_file_that_conceals_its_changes_turns_red_or_is_refused(translator, name):
    run = translator.translate(TEXT, max_length=6, interventions=[INSIDE[name]])
    try:
        opened = load_trace(rewritten(file_of(run), without_changes))
    except TraceFileError:
        return
    assert not opened.attention.audit().passed


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, meta: arrays.pop("change.0"),
        lambda arrays, meta: arrays.update({"change.0": arrays["change.0"][:, :-1]}),
        lambda arrays, meta: arrays.pop("encoder.output"),
        lambda arrays, meta: arrays.pop("encoder.0.self_attention.read"),
        lambda arrays, meta: arrays.update({"encoder.output.own": arrays["encoder.output.own"][:-1]}),
        lambda arrays, meta: meta["run"].update(interventions=[{"do": "hide", "source_token": 99}]),
        lambda arrays, meta: meta["run"].update(interventions=[{"do": "nothing"}]),
        lambda arrays, meta: meta["run"].update(interventions="hide"),
        lambda arrays, meta: meta["run"]["interventions"][0].update(positions=[[99, 0]]),
        lambda arrays, meta: meta["run"]["interventions"][0].update(place="roof"),
        lambda arrays, meta: arrays.pop("encoder.positions"),
        lambda arrays, meta: arrays.update({"change.1": arrays["change.0"]}),
    ],
)
def test_a_file_whose_changes_contradict_its_arrays_is_refused_in_one_sentence(translator, change):
    run = translator.translate(TEXT, max_length=6, interventions=[INSIDE["patch the encoder's output"]])
    with pytest.raises(TraceFileError, match=r"^The [^\n]+\.$"):
        load_trace(rewritten(file_of(run), change))


@pytest.mark.parametrize(
    ("name", "change", "check"),
    [
        (
            "drop a network",
            lambda arrays, meta: arrays["encoder.1.feed_forward.output"].__iadd__(np.float32(0.1)),
            STREAM,
        ),
        ("choose", lambda arrays, meta: meta["run"]["interventions"][0].update(token=7), TOKENS),
    ],
)
def test_a_file_is_checked_against_its_changes_without_a_model(translator, name, change, check):
    run = translator.translate(TEXT, max_length=6, interventions=[EVERY[name]])
    report = load_trace(rewritten(file_of(run), change)).attention.audit()
    assert check in {each.name for each in report.checks if not each.passed}
