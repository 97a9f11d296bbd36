"""Labels, texts and positions belong to the trace: what is exchanged turns the audit red."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from changes import EVERY, changeable
from forged import forged
from marian_models import write_marian
from random_models import random_language_model, random_model, random_recurrent

from explorer.lenses.what_if.rearranged import encode_moved
from transformer import load_trace, load_translator, save_trace
from transformer.audit import LABELS_UNMADE, POSITIONS_UNMADE
from transformer.encodings import REGISTRY
from transformer.run import Translation
from transformer.trace import EmbeddingTrace
from transformer.translator import Translator, retrace

TEXT, OTHER = "one two three four five", "five four three two one"
NETWORKS = [*REGISTRY, "post", "recurrent", "language", "marian", "bfloat16"]


def forced(model: Translator) -> Translation:
    return model.force(TEXT, "two one four three")


def made(name: str, translator: Translator, folder: Path) -> Translation:
    """A run of each network and encoding, with different tokens in each place."""
    vocabulary, tokenizer = translator.config.vocab_size, translator.tokenizer
    if name == "language":
        return Translator(random_language_model(vocab_size=vocabulary), tokenizer).force(TEXT)
    if name == "recurrent":
        return forced(Translator(random_recurrent("dot", vocab_size=vocabulary), tokenizer))
    if name == "marian":
        write_marian(folder / "marian")
        model = load_translator(folder / "marian")
        return model.translate("the old house is small", max_length=6)
    network = random_model(
        vocab_size=vocabulary,
        positions=name if name in REGISTRY else "sinusoidal",
        norm="post" if name == "post" else "pre",
    )
    return forced(Translator(network.to(torch.bfloat16) if name == "bfloat16" else network, tokenizer))


@pytest.fixture(scope="module", params=NETWORKS)
def run(request: pytest.FixtureRequest, translator: Translator, tmp_path_factory) -> Translation:
    return made(request.param, translator, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def english(translator: Translator) -> Translation:
    return forced(translator)


def failed(run: Translation) -> set[str]:
    kind = next(reversed(run.config.sites))
    reports = run.audit(), run.head(kind, 0, 0).audit
    assert {report.passed for report in reports} in ({True}, {False})
    return {check.name for report in reports for check in report.checks if not check.passed}


def exchanged(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return (*tokens[:1], tokens[2], tokens[1], *tokens[3:])


def with_embedding(run: Translation, change: Callable[[EmbeddingTrace], EmbeddingTrace]) -> Translation:
    trace, side = run.attention, next(iter(run.attention.embeddings))
    embeddings = {**trace.embeddings, side: change(trace.embeddings[side])}
    return replace(run, attention=forged(trace, embeddings=embeddings))


def test_every_network_and_encoding_reads_what_its_labels_name(run: Translation):
    assert not failed(run)
    assert "tokens" in {check.name for check in run.audit().checks}
    assert not run.audit().unmade


def test_two_exchanged_source_labels_fail(run: Translation):
    if run.source_tokens:
        assert "text" in failed(replace(run, source_tokens=exchanged(run.source_tokens)))


def test_target_labels_moved_by_one_fail(run: Translation):
    moved = (*run.target_tokens[1:], run.target_tokens[0])
    assert failed(replace(run, target_tokens=moved)) >= {"text"}
    assert failed(replace(run, decoder_input_tokens=moved)) >= {"text"}


def test_labels_and_ids_exchanged_together_fail(run: Translation):
    """Whoever also exchanges what the trace says of its tokens meets the recorded embeddings."""
    trace, side = run.attention, next(iter(run.attention.embeddings))
    own = trace.tokens[side]
    swapped = replace(own, ids=exchanged(own.ids), pieces=exchanged(own.pieces))
    name = "source_tokens" if side == "encoder" else "decoder_input_tokens"
    mixed = replace(trace, tokens={**trace.tokens, side: swapped})
    assert "tokens" in failed(replace(run, attention=mixed, **{name: swapped.pieces}))


def test_parts_shifted_with_their_sum_kept_fail(run: Translation):
    def shift(each: EmbeddingTrace) -> EmbeddingTrace:
        by = torch.full_like(each.tokens, 0.5)
        positions = -by if each.positions is None else each.positions - by
        return replace(each, tokens=each.tokens + by, positions=positions)

    assert "tokens" in failed(with_embedding(run, shift))


def test_positions_of_the_next_token_fail(english: Translation):
    found = failed(with_embedding(english, lambda each: replace(each, positions=each.positions.roll(1, 0))))
    assert found == {"embeddings", "positions"}


def test_the_trace_of_another_sentence_fails(translator: Translator, english: Translation):
    other = translator.force(OTHER, "two one four three")
    assert failed(replace(english, attention=other.attention)) == {"labels", "text"}
    assert failed(replace(english, source_text=OTHER)) == {"text"}
    assert failed(replace(english, text="one two four three")) == {"text"}
    assert failed(replace(english, steps=())) == failed(replace(english, steps=english.steps[1:])) == {"text"}


@pytest.mark.parametrize("options", [{}, {"beam_size": 3}])
def test_cached_steps_and_replays_have_their_positions(translator: Translator, options: dict):
    run = translator.translate(TEXT, max_length=6, **options)
    assert not failed(run)
    assert not failed(retrace(translator, run))


@pytest.mark.parametrize("name", EVERY)
def test_a_changed_run_has_the_tokens_that_its_changes_ask_for(translator: Translator, name: str):
    model = changeable(translator.tokenizer)
    run = model.translate("one two three four", max_length=6, interventions=[EVERY[name]])
    assert not failed(run)
    assert "text" in failed(replace(run, source_tokens=exchanged(run.source_tokens)))


def test_a_moved_sentence_has_its_moved_positions(translator: Translator):
    assert encode_moved(translator, TEXT, 7).audit().passed
    trace = encode_moved(translator, TEXT, 7)
    own = trace.tokens["encoder"]
    assert not replace(trace, tokens={"encoder": replace(own, first=6)}).audit().passed


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_a_file_says_what_could_not_be_checked(translator: Translator, tmp_path: Path, positions: str):
    run = made(positions, translator, tmp_path)
    save_trace(run, tmp_path / "run.npz")
    report = load_trace(tmp_path / "run.npz").audit()
    assert report.passed
    assert LABELS_UNMADE in report.unmade
    assert (POSITIONS_UNMADE in report.unmade) == (positions == "learned")


def test_a_file_with_the_positions_of_another_formula_fails(translator: Translator, tmp_path: Path):
    run = made("sinusoidal", translator, tmp_path)
    trace = run.attention
    embeddings = {
        side: replace(each, tokens=each.tokens + 0.1, positions=each.positions - 0.1)
        for side, each in trace.embeddings.items()
    }
    save_trace(replace(run, attention=forged(trace, embeddings=embeddings)), tmp_path / "run.npz")
    assert not load_trace(tmp_path / "run.npz").audit().passed
