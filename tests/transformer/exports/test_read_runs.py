"""Runs of encoders alone as files: they open as they were, with what is predicted for masks."""

import io
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoder_models import KINDS, tokenizer_of, write_encoder
from hypothesis import given
from hypothesis import strategies as st
from masked_words import CHANGES, TEXT, encoder, vocabulary
from properties import PROPERTY, damaged, or_refused
from refusals import refused

from transformer import Capture, Translation, Translator, load_encoder, load_trace, save_trace
from transformer import interventions as do
from transformer.exports.maps import load_maps, save_maps
from transformer.exports.npz import RECORDED
from transformer.exports.record import TraceFileError
from transformer.storage.directory import save_checkpoint

TEXTS = (
    "The old house, and the 2 Dogs ran\n near a naïve café.",
    "the {mask} house and {mask} dogs",
    "the old{end}two {mask} ran",
    "x" * 150 + " {mask} 不同的 ½ 😀",
)


def saved(run: Translation, model: Any = None) -> io.BytesIO:
    save_trace(run, file := io.BytesIO(), model)
    return io.BytesIO(file.getvalue())


def check_same(opened: Translation, run: Translation) -> None:
    """All that is read off a run, to the last digit and the class of every piece."""
    for name in ("text", "source_text", "config", "method", "interventions", "fills"):
        assert getattr(opened, name) == getattr(run, name), name
    assert opened.source_tokens == run.source_tokens
    assert list(map(type, opened.source_tokens)) == list(map(type, run.source_tokens))
    for position, step in run.fills.items():
        tokens = (step.token, *(best.token for best in step.alternatives))
        again = opened.fills[position]
        named = (again.token, *(best.token for best in again.alternatives))
        assert [*map(type, named)] == [*map(type, tokens)]
    assert opened.predict is None
    for layer in range(run.config.n_layers):
        for head in range(run.config.n_heads):
            ours = opened.weights("encoder", layer, head)
            assert np.array_equal(ours, run.weights("encoder", layer, head))
    report = opened.audit()
    assert report.passed
    assert (RECORDED in {check.name for check in report.checks}) is bool(run.fills)


@pytest.fixture(scope="module", params=KINDS, ids=list(KINDS))
def published(request: Any, tmp_path_factory: Any) -> tuple[Translator, Any]:
    directory = write_encoder(tmp_path_factory.mktemp("encoder"), request.param)
    return load_encoder(directory, "cpu"), tokenizer_of(directory)


def test_a_run_of_every_family_opens_as_it_was(published: tuple[Translator, Any]) -> None:
    (reader, tokenizer) = published
    for text in TEXTS:
        text = text.format(mask=tokenizer.mask_token, end=tokenizer.sep_token)
        run = reader.fill(text)
        opened = load_trace(saved(run, reader.model))
        check_same(opened, run)
        check_same(load_trace(saved(opened)), run)


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_changed_run_opens_as_it_was(change: do.Intervention) -> None:
    reader = encoder(n_segments=2)
    run = reader.fill(TEXT, interventions=[change], capture=Capture(residual=True))
    check_same(load_trace(saved(run, reader.model)), run)


def test_a_run_without_an_output_opens_as_it_was() -> None:
    reader = encoder(mask_id=None, output_bias=False, output_transform=False)
    run = reader.fill(TEXT)
    check_same(load_trace(saved(run, reader.model)), run)


@cache
def parts() -> tuple[dict[str, Any], Any]:
    """Arrays and metadata of a file."""
    with np.load(saved(encoder().fill(TEXT)), allow_pickle=False) as opened:
        arrays = dict(opened)
    return arrays, json.loads(arrays.pop("meta").tobytes())


def packed(meta: Any) -> io.BytesIO:
    content = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    np.savez(file := io.BytesIO(), allow_pickle=False, meta=content, **parts()[0])
    return io.BytesIO(file.getvalue())


@given(st.deferred(lambda: damaged(parts()[1])))
@PROPERTY
def test_damaged_metadata_opens_or_is_refused_in_a_sentence(meta: Any) -> None:
    with or_refused(TraceFileError):
        opened = load_trace(packed(meta))
        assert opened.fills.keys() <= set(range(len(opened.source_tokens)))
        opened.audit()


def fills_at(place: int) -> Callable[[Any], None]:
    def change(run: Any) -> None:
        run["fills"][0][0] = place

    return change


def without_mask(run: Any) -> None:
    run["config"]["mask_id"] = None


def another_word(run: Any) -> None:
    run["fills"][0][1]["token"] = "▁elephant"


def an_output(run: Any) -> None:
    run["target_tokens"] = run["decoder_input_tokens"] = ["a"]


FORGED = {
    "a mask that is nowhere": fills_at(99),
    "a model without masks": without_mask,
    "another word": another_word,
    "an output": an_output,
}


@pytest.mark.parametrize("change", FORGED.values(), ids=list(FORGED))
def test_parts_that_contradict_each_other_are_refused(change: Callable[[Any], None]) -> None:
    meta = json.loads(json.dumps(parts()[1]))
    change(meta["run"])
    with refused(TraceFileError, "contradict"):
        load_trace(packed(meta))


def test_maps_of_a_run_open_as_they_were(tmp_path: Path) -> None:
    reader = encoder()
    save_checkpoint(tmp_path, reader.config, reader.model.state_dict(), vocabulary())
    run = load_encoder(tmp_path, "cpu").fill(TEXT)
    save_maps(run, tmp_path, tmp_path / "first.npz")
    opened = load_maps(tmp_path / "first.npz")
    assert opened.fills == run.fills
    assert opened.source_tokens == run.source_tokens
    for layer in range(run.config.n_layers):
        for head in range(run.config.n_heads):
            ours = opened.map("encoder", layer, head)
            theirs = run.head("encoder", layer, head)
            assert np.array_equal(ours.weights, theirs.weights)
            assert ours.predicted_tokens is theirs.predicted_tokens is None
            assert ours.audit == theirs.audit
