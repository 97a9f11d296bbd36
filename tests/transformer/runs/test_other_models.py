"""Recurrent models and language models behind a translator: every way, every change, every file,
audited."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from forged import forged
from masked_words import TEXT as MASKED
from masked_words import encoder
from random_models import random_language_model, random_recurrent

from explorer.lenses.what_if.controls import untrained_twin
from transformer import AttentionKind, Sampling, Translation, load_language_model, load_translator
from transformer import interventions as do
from transformer.attention import LocalWindow, ScoreRule
from transformer.batches import forced_log_probs, run_batch, translate_all
from transformer.config import Score, Sublayer
from transformer.exports.npz import load_trace, save_trace
from transformer.interventions import Intervention, InterventionError
from transformer.reader import InputError
from transformer.storage.directory import load_checkpoint, save_checkpoint
from transformer.storage.files import CheckpointError
from transformer.text.tokenizer import Tokenizer
from transformer.trace import AttentionTrace, LayerTrace
from transformer.translator import Translator, retrace
from transformer.view import PLACES

TEXT, OTHER = "one two three four five", "nine ten one"
CROSS = AttentionKind.CROSS


@pytest.fixture(scope="module", params=get_args(Score))
def recurrent(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> Translator:
    """A random model of each score."""
    model = random_recurrent(request.param, vocab_size=tokenizer.vocab_size)
    return Translator(model, tokenizer, name=request.param)


def failed(trace: AttentionTrace | None) -> set[str]:
    assert trace is not None
    return {check.name for check in trace.audit().checks if not check.passed}


def test_a_batch_gives_every_text_its_own_translation_verified(recurrent: Translator):
    texts = [TEXT, OTHER, "six"]
    for size in (1, 3):
        alone = [recurrent.translate(text, max_length=7, beam_size=size).text for text in texts]
        assert translate_all(recurrent, texts, beam_size=size, max_length=7) == alone
    assert [failed(entry.attention) for entry in run_batch(recurrent, texts)] == [set()] * 3


CHANGES: dict[str, Callable[[Translation], Intervention]] = {
    "no output": lambda _: do.ablate("cross", 0, 0),
    "uniform": lambda _: do.ablate("cross", 0, 0, by="uniform"),
    "by hand": lambda _: do.set_row("cross", 0, 0, 1, {2: 0.25}),
    "scaled": lambda _: do.scale("cross", 0, 0, 0.5, rows=1),
    "hotter": lambda _: do.temperature("cross", 0, 0, 2.0),
    "masked": lambda _: do.mask("cross", forbid=[(1, 2)]),
    "lifted": lambda _: do.mask("cross", allow="all"),
    "hidden": lambda _: do.hide(2),
    "chosen": lambda run: do.choose(0, run.steps[0].alternatives[1].token_id),
    "edited": lambda _: do.edit_source(1, "▁nine"),
    "source embedding": lambda run: do.patch(do.embeddings("encoder"), run, {0: 1}),
    "target embedding": lambda run: do.patch(do.embeddings("decoder"), run, {1: 0}),
    "memory": lambda run: do.patch(do.encoder_output(), run, {0: 0, 2: 1}),
    "head output": lambda run: do.patch(do.head_output("cross", 0, 0), run, {0: 1}),
}


def test_a_changed_run_is_verified_and_opens_again_from_its_file(recurrent: Translator):
    other = recurrent.translate(OTHER, max_length=4)
    for i, (name, make) in enumerate(CHANGES.items()):
        change = make(other)
        run = recurrent.translate(
            TEXT, beam_size=1 + 2 * (i % 2), max_length=7, interventions=[change]
        )
        assert not failed(run.attention), name
        assert run.attention.audit().placed
        save_trace(run, file := io.BytesIO(), recurrent.model)
        file.seek(0)
        opened = load_trace(file).attention
        assert not failed(opened), name
        np.testing.assert_array_equal(opened.weights("cross", 0), run.attention.weights("cross", 0))


LACKS: list[tuple[Intervention, str]] = [
    (do.ablate("encoder", 0, 0), "no encoder self-attention"),
    (do.mask("decoder", forbid=[(1, 0)]), "no decoder self-attention"),
    (do.drop_sublayer("decoder", 0, "feed_forward"), "no feed-forward network"),
    (do.drop_norm("encoder"), "no norm in the encoder"),
    (do.no_positions("encoder"), "no positions in the encoder"),
    (do.unscaled("cross", 0), "not divided by √d_k"),
    (do.ablate("cross", 1, 0), "no layer 2"),
    (do.ablate("cross", 0, 1), "no head 2"),
]


def test_a_change_of_what_a_recurrent_model_lacks_is_refused_in_one_sentence(recurrent: Translator):
    for change, message in LACKS:
        with pytest.raises(InterventionError, match=message) as error:
            recurrent.translate(TEXT, interventions=[change])
        assert "\n" not in str(error.value)


def other_rule(layer: LayerTrace) -> ScoreRule:
    vector = torch.ones(1, layer.query.shape[2])
    return ScoreRule("dot") if layer.score.name == "additive" else ScoreRule("additive", vector)


FORGERIES: dict[str, Callable[[LayerTrace], dict[str, Any] | None]] = {
    "query of another step": lambda layer: {"query": layer.query.roll(1, dims=1)},
    "outputs of other steps": lambda layer: {"output": layer.output.roll(1, dims=1)},
    "rule": lambda layer: {"score": other_rule(layer)},
    "vector": lambda layer: (
        {"score": ScoreRule("additive", layer.score.vector * 1.2)}
        if layer.score.vector is not None
        else None
    ),
    "centre": lambda layer: (
        {"focus": LocalWindow(layer.focus.centres + 0.1, layer.focus.half_width)}
        if layer.focus
        else None
    ),
    "no centre": lambda layer: {"focus": None} if layer.focus else None,
}


def test_the_audit_turns_red_for_a_forged_record(recurrent: Translator):
    trace = recurrent.translate(TEXT, max_length=7).attention
    layer = trace.layer(CROSS, 0)
    for name, make in FORGERIES.items():
        if (changes := make(layer)) is not None:
            checks = failed(forged(trace, layers={CROSS: (replace(layer, **changes),)}))
            assert checks, name
            assert name != "centre" or PLACES in checks


def test_local_attention_hides_what_lies_outside_its_window(tokenizer: Tokenizer):
    model = random_recurrent("local", vocab_size=tokenizer.vocab_size, reach=1)
    run = Translator(model, tokenizer).translate(TEXT, max_length=7)
    focus = run.attention.layer(CROSS, 0).focus
    view = run.head("cross", 0, 0)
    near = np.abs(np.arange(len(run.source_tokens)) - focus.centres.numpy()[:, None]) <= 1
    np.testing.assert_array_equal(view.mask, near)
    assert not view.weights[~near].any()
    assert (view.weights.sum(1) < 1).all()


def test_a_recurrent_model_is_saved_opened_rounded_and_made_anew_with_its_score(
    recurrent, tokenizer, tmp_path: Path
):
    save_checkpoint(
        tmp_path, recurrent.config, recurrent.model.state_dict(), tokenizer, card="# A model\n"
    )
    opened = load_checkpoint(tmp_path)
    assert (opened.config, type(opened.model)) == (recurrent.config, type(recurrent.model))
    run = recurrent.translate(TEXT, max_length=7)
    np.testing.assert_allclose(
        load_translator(tmp_path).translate(TEXT, max_length=7).log_probs, run.log_probs, atol=0.05
    )
    assert not failed(
        load_translator(tmp_path, dtype="bfloat16").translate(TEXT, max_length=7).attention
    )
    twin = untrained_twin(recurrent, 1)
    assert twin.config == recurrent.config
    assert not failed(
        twin.force(TEXT, recurrent.translate(TEXT, max_length=4).target_ids).attention
    )


# --- language models -----------------------------------------------------------------------------

PROMPT = "one two three"


@pytest.fixture(scope="module", params=["rotary", "alibi", "t5"])
def generator(request, tokenizer) -> Translator:
    model = random_language_model(positions=request.param, vocab_size=tokenizer.vocab_size)
    return Translator(model, tokenizer, name="random")


@pytest.mark.parametrize("prompt", [PROMPT, ""])
def test_greedy_takes_the_most_probable_token_after_the_prompt(generator, prompt):
    ids = [generator.config.bos_id, *generator.ids(prompt)]
    n = len(ids) - 1
    while len(ids) <= 20 and ids[-1] != generator.config.eos_id:  # greedy search without a cache
        ids.append(int(generator.model(torch.tensor([ids]))[0, -1].argmax()))
    run = generator.generate(prompt, max_length=20)
    assert ([*run.target_ids], run.n_given, run.prompt) == (ids[1:], n, prompt)
    *steps, _ = generator.stream(prompt, max_length=20)
    assert [step.token for step in steps] == [*run.target_tokens]


def test_a_beam_begins_with_its_prompt_a_seed_draws_again_and_texts_are_scored(generator):
    beam = generator.generate(PROMPT, beam_size=8, max_length=10, length_penalty=0.0, tree=True)
    assert beam.target_ids[: beam.n_given] == generator.ids(PROMPT)
    node = retrace(generator, beam, node=beam.tree.winner)
    assert (node.prompt, node.n_given) == (PROMPT, len(generator.ids(PROMPT)))
    draws = [
        generator.generate(PROMPT, sample=Sampling(seed=seed), max_length=20) for seed in (1, 1, 2)
    ]
    assert draws[0].target_ids == draws[1].target_ids != draws[2].target_ids
    texts = ["one two", "three", "four five six seven one two"]
    expected = [sum(generator.force(text, capture=False).log_probs) for text in texts]
    np.testing.assert_allclose(
        [sum(prob) for prob in forced_log_probs(generator, texts)], expected, rtol=1e-5
    )


CONTINUED: dict[str, Intervention] = {
    "head": do.ablate("decoder", 0, 2, by="zero"),
    "previous": do.ablate("decoder", 1, 0, by="previous"),
    "row": do.set_row("decoder", 0, 1, 4, {2: 0.5}),
    "sublayer": do.drop_sublayer("decoder", 1, "feed_forward"),
    "norm": do.drop_norm("decoder", 0, "self_attention"),
    "forbid": do.forbid("▁six"),
    "choose": do.choose(6, "▁two"),
    "patch": do.patch(
        do.stream("decoder", 0, "feed_forward"), do.run("four", [10, 11, 12, 13]), [1]
    ),
}


def test_a_change_is_recorded_audited_and_the_same_in_a_forced_pass(generator):
    for name, change in CONTINUED.items():
        run = generator.generate(PROMPT, max_length=14, interventions=[change])
        report = run.attention.audit()
        assert (report.passed, report.changes) == (True, (str(change),)), name
        forced = generator.force(run.target_ids, interventions=[change])
        assert forced.log_probs == pytest.approx(run.log_probs, abs=1e-4), name
    other = generator.generate("two three", max_length=8)
    patch = do.patch(do.stream("decoder", 0, "feed_forward"), other, [1])
    patched = generator.generate(PROMPT, max_length=8, interventions=[patch])
    stream = Sublayer("decoder", 0, "feed_forward")
    other = retrace(generator, other)
    assert patched.attention.audit().passed
    assert torch.equal(patched.stream(stream).stream[1], other.stream(stream).stream[1])


ROOMLESS = [
    (
        lambda g: g.generate(PROMPT, interventions=[do.hide(0)]),
        InterventionError,
        "no cross-attention",
    ),
    (
        lambda g: g.generate(PROMPT, interventions=[do.choose(2, "a")]),
        InterventionError,
        "prompt decides",
    ),
    (lambda g: g.generate(PROMPT, interventions=[do.drop_source(0)]), InterventionError, "source"),
    *(
        (lambda g, n=n: g.generate(PROMPT, max_length=n), ValueError, "max_length")
        for n in (3, 5000)
    ),
    (lambda g: g.force([]), InputError, "empty"),
    (lambda g: translate_all(g, [PROMPT]), ValueError, "only translations are made in batches"),
    (lambda g: run_batch(g, [PROMPT]), ValueError, "only translations are made in batches"),
]


@pytest.mark.parametrize(("use", "error", "reason"), ROOMLESS, ids=range(len(ROOMLESS)))
def test_what_a_language_model_cannot_do_is_refused_in_one_sentence(generator, use, error, reason):
    with pytest.raises(error, match=reason):
        use(generator)


def test_a_language_model_is_opened_as_one_and_others_are_not(
    generator, tmp_path, closed_form_models
):
    model = generator.model
    save_checkpoint(tmp_path / "lm", model.config, model.state_dict(), generator.tokenizer)
    opened = load_language_model(tmp_path / "lm")
    assert opened.config == model.config
    assert opened.generate(PROMPT, max_length=4).n_given == 3
    with pytest.raises(CheckpointError, match="cannot translate"):
        load_translator(tmp_path / "lm")
    with pytest.raises(CheckpointError, match="load_translator"):
        load_language_model(closed_form_models["copy"])


def test_a_run_is_read_again_by_a_model_of_any_kind_in_one_pass(translator, generator, recurrent):
    runs = [
        (translator, translator.translate(TEXT, beam_size=2, max_length=4)),
        (recurrent, recurrent.translate(TEXT, max_length=4)),
        (generator, generator.generate(PROMPT, max_length=6)),
        (encoder(), encoder().fill(MASKED, interventions=[do.ablate("encoder", 0, 0)])),
    ]
    for model, run in runs:
        again = model.again(run, interventions=run.interventions)
        assert (again.source_tokens, again.target_ids) == (run.source_tokens, run.target_ids)
        assert again.log_probs == pytest.approx(run.log_probs, abs=1e-4)
        assert {**again.fills}.keys() == {**run.fills}.keys()
        assert model.again(run).interventions == ()
