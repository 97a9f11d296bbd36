"""Texts continued by a language model: the same by every way, recorded, audited and open to changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from forged import forged
from random_models import random_language_model

from transformer import Capture, Sampling, Translator, load_language_model, load_translator
from transformer import interventions as do
from transformer.batches import forced_log_probs, run_batch, translate_all
from transformer.config import Sublayer
from transformer.interventions import InterventionError
from transformer.run import DecodeStep, Translation
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import CheckpointError
from transformer.translator import InputError, retrace

PROMPT = "one two three"


@pytest.fixture(scope="module", params=["rotary", "alibi", "t5"])
def generator(request, tokenizer):
    model = random_language_model(positions=request.param, vocab_size=tokenizer.vocab_size)
    return Translator(model, tokenizer, name="random")


def by_hand(generator: Translator, prompt: str, count: int) -> list[int]:
    """Greedy search without a cache."""
    ids = [generator.config.bos_id, *generator.ids(prompt)]
    while len(ids) <= count and ids[-1] != generator.config.eos_id:
        ids.append(int(generator.model(torch.tensor([ids]))[0, -1].argmax()))
    return ids[1:]


def test_the_run_of_a_node_keeps_the_prompt(generator):
    base = generator.generate(PROMPT, max_length=8, beam_size=2, tree=True)
    found = retrace(generator, base, node=base.tree.winner)
    assert (
        (found.prompt, found.n_given) == (base.prompt, base.n_given) == (PROMPT, len(generator.ids(PROMPT)))
    )


@pytest.mark.parametrize("prompt", [PROMPT, ""])
def test_greedy_takes_the_most_probable_token_after_the_prompt(generator, prompt):
    found = generator.generate(prompt, max_length=20)
    assert list(found.target_ids) == by_hand(generator, prompt, 20)
    assert found.n_given == len(generator.ids(prompt))
    assert found.target_ids[: found.n_given] == generator.ids(prompt)


def test_a_generation_is_read_like_a_translation_without_source(generator):
    found = generator.generate(PROMPT, max_length=12)
    labels = found.labels("decoder")
    assert labels.queries == labels.keys == ("<s>", *found.target_tokens[:-1])
    assert labels.predicted == found.target_tokens
    assert found.source_tokens == ()
    view = found.head("decoder", 1, 2)
    assert view.weights.shape == (12, 12)
    np.testing.assert_allclose(view.weights.sum(-1), 1, atol=1e-5)
    assert view.audit.passed
    assert found.attention.audit().passed


def test_the_steps_of_the_prompt_have_the_model_s_log_probabilities(generator):
    found = generator.generate(PROMPT, max_length=12)
    ids = torch.tensor([[generator.config.bos_id, *found.target_ids]])
    logs = generator.model(ids[:, :-1]).log_softmax(-1)[0]
    expected = logs.gather(1, ids[0, 1:, None])[:, 0].tolist()
    assert found.log_probs == pytest.approx(expected, abs=1e-4)
    assert found.surprisals == pytest.approx([-value / math.log(2) for value in expected], abs=1e-3)


def test_stream_yields_each_step_and_then_the_text(generator):
    *steps, last = generator.stream(PROMPT, max_length=10)
    assert isinstance(last, Translation)
    assert all(isinstance(step, DecodeStep) for step in steps)
    assert [step.token for step in steps] == list(last.target_tokens)


def test_a_beam_finds_nothing_worse_than_greedy_and_is_recorded(generator):
    greedy = generator.generate(PROMPT, max_length=10)
    beam = generator.generate(PROMPT, beam_size=8, max_length=10, length_penalty=0.0, tree=True)
    assert sum(beam.log_probs) >= sum(greedy.log_probs) - 1e-5
    assert beam.attention.audit().passed
    assert beam.target_ids[: beam.n_given] == generator.ids(PROMPT)
    assert beam.tree is not None


def test_the_same_seed_draws_the_same_text(generator):
    drawn = [generator.generate(PROMPT, sample=Sampling(seed=seed), max_length=20) for seed in (1, 1, 2)]
    assert drawn[0].target_ids == drawn[1].target_ids != drawn[2].target_ids
    assert drawn[0].method == "sample-1"


def test_a_forced_text_has_the_probabilities_of_the_generated_one(generator):
    found = generator.generate(PROMPT, max_length=12)
    forced = generator.force(found.target_ids)
    assert forced.log_probs == pytest.approx(found.log_probs, abs=1e-4)
    assert forced.attention.audit().passed
    for layer in range(2):
        then, now = (run.attention.weights("decoder", layer) for run in (found, forced))
        np.testing.assert_allclose(then, now, atol=1e-5)


def test_log_probabilities_of_many_texts_are_those_of_each(generator):
    texts = ["one two", "three", "four five six seven one two"]
    expected = [sum(generator.force(text, capture=False).log_probs) for text in texts]
    found = [sum(each) for each in forced_log_probs(generator, texts)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


CHANGES = {
    "head": do.ablate("decoder", 0, 2, by="zero"),
    "previous": do.ablate("decoder", 1, 0, by="previous"),
    "scale": do.scale("decoder", 1, 1, 0.5),
    "row": do.set_row("decoder", 0, 1, 4, {2: 0.5}),
    "temperature": do.temperature("decoder", 0, 0, 2.0),
    "sublayer": do.drop_sublayer("decoder", 1, "feed_forward"),
    "norm": do.drop_norm("decoder", 0, "self_attention"),
    "forbid": do.forbid("▁six"),
    "choose": do.choose(6, "▁two"),
    "patch": do.patch(do.stream("decoder", 0, "feed_forward"), do.run("four", [10, 11, 12, 13]), [1]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_recorded_audited_and_the_same_in_a_forced_pass(generator, change):
    found = generator.generate(PROMPT, max_length=14, interventions=[change])
    report = found.attention.audit()
    assert report.passed, report
    assert report.changes == (str(change),)
    forced = generator.force(found.target_ids, interventions=[change])
    assert forced.log_probs == pytest.approx(found.log_probs, abs=1e-4)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (do.hide(0), "no cross-attention"),
        (do.ablate("encoder", 0, 0), "no encoder self-attention"),
        (do.drop_sublayer("decoder", 0, "cross_attention"), "no cross-attention"),
        (do.ablate("decoder", 0, 0, by="mean"), "no mean outputs"),
        (do.ablate("decoder", 7, 0), "no layer 8"),
        (do.choose(1, "▁two"), "The prompt decides"),
        (do.drop_source(0), "source"),
    ],
)
def test_a_change_of_what_it_lacks_is_refused_in_one_sentence(generator, change, reason):
    with pytest.raises(InterventionError, match=reason):
        generator.generate(PROMPT, interventions=[change])


def test_a_mutated_recording_fails_the_audit(generator):
    found = generator.generate(PROMPT, max_length=10)
    layers = found.attention.layers["decoder"]
    swapped = forged(found.attention, layers={**found.attention.layers, "decoder": layers[::-1]})
    assert not swapped.audit().passed


def test_the_residual_stream_is_recorded_on_request(generator):
    found = generator.generate(PROMPT, max_length=8, capture=Capture(residual=True))
    assert found.stream(Sublayer("decoder", 1, "feed_forward")).stream.shape == (8, 32)
    assert found.attention.audit().passed


@pytest.mark.parametrize("max_length", [3, 0, 5000])
def test_a_length_without_room_is_refused(generator, max_length):
    with pytest.raises(ValueError, match="max_length"):
        generator.generate(PROMPT, max_length=max_length)


def test_an_empty_text_cannot_be_forced(generator):
    with pytest.raises(InputError, match="empty"):
        generator.force([])


def test_it_is_saved_and_opened_and_cannot_translate(generator, tmp_path):
    model = generator.model
    save_checkpoint(tmp_path / "lm", model.config, model.state_dict(), generator.tokenizer)
    opened = load_language_model(tmp_path / "lm")
    assert opened.config == model.config
    assert opened.generate(PROMPT, max_length=6).n_given == 3
    with pytest.raises(CheckpointError, match="cannot translate"):
        load_translator(tmp_path / "lm")


def test_a_model_that_translates_is_no_language_model(closed_form_models):
    with pytest.raises(CheckpointError, match="load_translator"):
        load_language_model(closed_form_models["copy"])


def test_batches_are_refused_in_one_sentence(generator):
    with pytest.raises(ValueError, match="only translations are made in batches"):
        translate_all(generator, [PROMPT])


def test_a_run_of_a_prompt_can_be_patched_from(generator):
    other = generator.generate("two three", max_length=8)
    place = do.stream("decoder", 0, "feed_forward")
    patched = generator.generate(PROMPT, max_length=8, interventions=[do.patch(place, other, [1])])
    stream, other = Sublayer("decoder", 0, "feed_forward"), retrace(generator, other)
    assert patched.attention.audit().passed
    assert torch.equal(patched.stream(stream).stream[1], other.stream(stream).stream[1])


def test_a_language_model_takes_one_text(generator):
    with pytest.raises(TypeError, match="takes one text"):
        generator.force(PROMPT, PROMPT)
    with pytest.raises(ValueError, match="only translations are made in batches"):
        run_batch(generator, [PROMPT])
