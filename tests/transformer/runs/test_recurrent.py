"""A recurrent model behind a translator: every way to decode, every change, every file, all audited."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from forged import forged
from random_models import random_recurrent

from explorer.lenses.what_if.controls import same_tokens, untrained_twin
from transformer import AttentionKind, Sampling, Translation, interventions
from transformer.attention import LocalWindow, ScoreRule
from transformer.batches import run_batch, translate_all
from transformer.config import Score
from transformer.exports.npz import load_trace, save_trace
from transformer.interventions import Intervention, InterventionError
from transformer.storage.directory import load_checkpoint, save_checkpoint
from transformer.text.tokenizer import Tokenizer
from transformer.trace import AttentionTrace, LayerTrace
from transformer.translator import Translator, load_translator, retrace
from transformer.view import PLACES

do = interventions
TEXT, OTHER = "one two three four five", "nine ten one"
CROSS = AttentionKind.CROSS
SCORES = get_args(Score)
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beam": {"beam_size": 3},
    "sampled": {"sample": Sampling(seed=5)},
}


@pytest.fixture(scope="module", params=SCORES)
def recurrent(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> Translator:
    """A random model of each score."""
    model = random_recurrent(request.param, vocab_size=tokenizer.vocab_size)
    return Translator(model, tokenizer, name=request.param)


def failed(trace: AttentionTrace | None) -> set[str]:
    assert trace is not None
    return {check.name for check in trace.audit().checks if not check.passed}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_decode_is_recorded_and_verified(recurrent: Translator, way: str):
    found = recurrent.translate(TEXT, max_length=7, **WAYS[way])
    assert found.attention is not None
    assert list(found.attention.layers) == [CROSS]
    assert not failed(found.attention)
    assert found.attention.audit().placed
    assert found.head("cross", 0, 0).audit.passed


def test_its_own_output_forced_has_the_same_probabilities(recurrent: Translator):
    found = recurrent.translate(TEXT, max_length=7)
    forced = recurrent.force(TEXT, found.target_ids)
    assert not failed(forced.attention)
    np.testing.assert_allclose(forced.log_probs, found.log_probs, atol=1e-4)
    np.testing.assert_allclose(*(run.attention.weights("cross", 0) for run in (found, forced)), atol=1e-5)


def test_a_beam_of_one_is_greedy(recurrent: Translator):
    greedy, beam = (recurrent.translate(TEXT, max_length=7, tree=tree) for tree in (False, True))
    assert greedy.target_ids == beam.target_ids


def test_a_batch_gives_every_text_its_own_translation(recurrent: Translator):
    texts = [TEXT, OTHER, "six"]
    assert translate_all(recurrent, texts, max_length=7) == [
        recurrent.translate(text, max_length=7).text for text in texts
    ]
    assert translate_all(recurrent, texts, beam_size=3, max_length=7) == [
        recurrent.translate(text, max_length=7, beam_size=3).text for text in texts
    ]


def test_every_row_of_a_padded_batch_is_verified(recurrent: Translator):
    assert not [
        failed(entry.attention) for entry in run_batch(recurrent, [TEXT, OTHER]) if failed(entry.attention)
    ]


def test_a_run_traced_again_with_its_memory_is_verified(recurrent: Translator):
    again = retrace(recurrent, recurrent.translate(TEXT, max_length=7, capture=False))
    assert not failed(again.attention)
    assert again.attention is not None
    assert "encoder.output" in again.attention.tensors


CHANGES: dict[str, Callable[[Translation], Intervention]] = {
    "no output": lambda _: do.ablate("cross", 0, 0),
    "uniform": lambda _: do.ablate("cross", 0, 0, by="uniform"),
    "scaled": lambda _: do.scale("cross", 0, 0, 0.5, rows=1),
    "hotter": lambda _: do.temperature("cross", 0, 0, 2.0),
    "masked": lambda _: do.mask("cross", forbid=[(1, 2)]),
    "lifted": lambda _: do.mask("cross", allow="all"),
    "hidden": lambda _: do.hide(2),
    "chosen": lambda run: do.choose(0, run.steps[0].alternatives[1].token_id),
    "forbidden": lambda run: do.forbid(run.target_ids[0]),
    "begun": lambda run: do.prefix([run.steps[0].alternatives[1].token_id]),
    "edited": lambda _: do.edit_source(1, "▁nine"),
    "dropped": lambda _: do.drop_source(1),
    "source embedding": lambda run: do.patch(do.embeddings("encoder"), run, {0: 1}),
    "target embedding": lambda run: do.patch(do.embeddings("decoder"), run, {1: 0}),
    "memory": lambda run: do.patch(do.encoder_output(), run, {0: 0, 2: 1}),
    "head output": lambda run: do.patch(do.head_output("cross", 0, 0), run, {0: 1}),
}


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_run_is_verified_and_opens_again_from_its_files(
    recurrent: Translator, name: str, beam_size: int
):
    change = CHANGES[name](recurrent.translate(OTHER, max_length=4))
    found = recurrent.translate(TEXT, beam_size=beam_size, max_length=7, interventions=[change])
    assert not failed(found.attention)
    assert found.attention is not None
    assert found.attention.audit().placed
    file = io.BytesIO()
    save_trace(found, file, recurrent.model)
    file.seek(0)
    opened = load_trace(file)
    assert not failed(opened.attention)
    assert opened.attention is not None
    weights = found.attention.weights("cross", 0)
    np.testing.assert_array_equal(opened.attention.weights("cross", 0), weights)


def test_given_weights_replace_a_row(recurrent: Translator):
    free = recurrent.translate(TEXT, max_length=5)
    key = int(free.head("cross", 0, 0).weights[1].argmax())
    change = do.set_row("cross", 0, 0, 1, {key: 0.25})
    found = recurrent.translate(TEXT, max_length=5, interventions=[change])
    assert not failed(found.attention)
    assert found.head("cross", 0, 0).weights[1, key] == pytest.approx(0.25, abs=1e-6)


def test_attention_without_output_changes_what_is_predicted(recurrent: Translator):
    free = recurrent.force(TEXT, OTHER)
    changed = recurrent.force(TEXT, OTHER, interventions=[do.ablate("cross", 0, 0)])
    assert not np.allclose(free.log_probs, changed.log_probs, atol=1e-3)


REFUSED: dict[str, tuple[Intervention, str]] = {
    "self-attention": (do.ablate("encoder", 0, 0), "no encoder self-attention"),
    "masked self-attention": (do.mask("decoder", forbid=[(1, 0)]), "no decoder self-attention"),
    "sub-layer": (do.drop_sublayer("decoder", 0, "feed_forward"), "no feed-forward network"),
    "LayerNorm": (do.drop_norm("encoder"), "no norm in the encoder"),
    "LayerNorm of a sub-layer": (do.drop_norm("decoder", 0, "cross_attention"), "no cross-attention"),
    "positions": (do.no_positions("encoder"), "no positions in the encoder"),
    "stream": (
        do.patch(do.stream("encoder", 0, "feed_forward"), do.run(OTHER), {0: 0}),
        "no encoder layer 1 feed-forward network",
    ),
    "division": (do.unscaled("cross", 0), "not divided by √d_k"),
    "second layer": (do.ablate("cross", 1, 0), "no layer 2"),
    "second head": (do.ablate("cross", 0, 1), "no head 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_of_what_it_lacks_is_refused_in_one_sentence(recurrent: Translator, name: str):
    change, message = REFUSED[name]
    with pytest.raises(InterventionError, match=message) as error:
        recurrent.translate(TEXT, interventions=[change])
    assert len(str(error.value).splitlines()) == 1


def with_layer(trace: AttentionTrace, **records: Any) -> AttentionTrace:
    """The trace with other records of its one attention."""
    return forged(trace, layers={CROSS: (replace(trace.layer(CROSS, 0), **records),)})


MUTATIONS: dict[str, Callable[[LayerTrace], dict[str, Any]]] = {
    "query": lambda layer: {"query": layer.query * 1.1},
    "query of another step": lambda layer: {"query": layer.query.roll(1, dims=1)},
    "key": lambda layer: {"key": layer.key * 1.1},
    "value": lambda layer: {"value": layer.value.roll(1, dims=1)},
    "output": lambda layer: {"output": layer.output * 1.1},
    "outputs of other steps": lambda layer: {"output": layer.output.roll(1, dims=1)},
    "rule": lambda layer: {
        "score": ScoreRule("dot")
        if layer.score.name == "additive"
        else ScoreRule("additive", torch.ones(1, layer.query.shape[2]))
    },
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_audit_turns_red_for_a_mutated_record(recurrent: Translator, name: str):
    trace = recurrent.translate(TEXT, max_length=7).attention
    assert trace is not None
    assert failed(with_layer(trace, **MUTATIONS[name](trace.layer(CROSS, 0))))


def test_the_audit_turns_red_for_another_vector_or_centre(recurrent: Translator):
    trace = recurrent.translate(TEXT, max_length=7).attention
    assert trace is not None
    layer = trace.layer(CROSS, 0)
    if layer.score.vector is not None:
        assert failed(with_layer(trace, score=ScoreRule("additive", layer.score.vector * 1.2)))
    if layer.focus is not None:
        assert PLACES in failed(
            with_layer(trace, focus=LocalWindow(layer.focus.centres + 0.1, layer.focus.half_width))
        )
        assert failed(with_layer(trace, focus=None))


def test_local_attention_hides_what_lies_outside_its_window(tokenizer: Tokenizer):
    model = random_recurrent("local", vocab_size=tokenizer.vocab_size, reach=1)
    found = Translator(model, tokenizer).translate(TEXT, max_length=7)
    assert found.attention is not None
    focus, view = found.attention.layer(CROSS, 0).focus, found.head("cross", 0, 0)
    assert focus is not None
    near = np.abs(np.arange(len(found.source_tokens)) - focus.centres.numpy()[:, None]) <= 1
    np.testing.assert_array_equal(view.mask, near)
    assert not view.weights[~near].any()
    assert (view.weights.sum(1) < 1).all()


def test_it_is_saved_and_opened_with_its_score(recurrent: Translator, tokenizer: Tokenizer, tmp_path: Path):
    save_checkpoint(tmp_path, recurrent.config, recurrent.model.state_dict(), tokenizer, card="# A model\n")
    opened = load_checkpoint(tmp_path)
    assert opened.config == recurrent.config
    assert type(opened.model) is type(recurrent.model)
    again = load_translator(tmp_path).translate(TEXT, max_length=7)
    np.testing.assert_allclose(again.log_probs, recurrent.translate(TEXT, max_length=7).log_probs, atol=0.05)


def test_in_bfloat16_it_translates_and_is_verified(
    recurrent: Translator, tokenizer: Tokenizer, tmp_path: Path
):
    save_checkpoint(tmp_path, recurrent.config, recurrent.model.state_dict(), tokenizer)
    found = load_translator(tmp_path, dtype="bfloat16").translate(TEXT, max_length=7)
    assert not failed(found.attention)


def test_a_question_that_it_cannot_answer_is_refused_in_one_sentence(recurrent: Translator):
    with pytest.raises(InterventionError, match="no encoder self-attention"):
        recurrent.translate(TEXT, interventions=[do.ablate("encoder", 0, 0)])


def test_its_untrained_twin_has_its_score(recurrent: Translator):
    twin = untrained_twin(recurrent, 1)
    assert twin.config == recurrent.config
    assert not failed(same_tokens(twin, recurrent.translate(TEXT, max_length=4)).attention)
