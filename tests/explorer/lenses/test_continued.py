"""What an output rests on where a model reads no source: measured anew by interventions, by sums
over heads, and by the model's own log-probabilities."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from decoder_models import write_decoder
from random_models import random_language_model

from explorer import lenses
from explorer.lenses.measures.effect import without
from explorer.lenses.targets.lesson import lesson
from transformer import Capture, Translation, Translator, load_language_model
from transformer import interventions as do
from transformer.config import AttentionKind
from transformer.text.tokenizer import Tokenizer

TEXT = "one two three two one"
Made = tuple[Translator, Translation]


@pytest.fixture(scope="module", params=["own", "GPT-2", "Llama, groups of three"])
def made(request, tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Made:
    """A model of every kind that continues, and a text that it read."""
    if request.param == "own":
        model = random_language_model(vocab_size=tokenizer.vocab_size)
        translator = Translator(model.eval(), tokenizer, name="own")
        text = TEXT
    else:
        directory: Path = tmp_path_factory.mktemp("continued")
        write_decoder(directory, request.param)
        translator = load_language_model(directory, "cpu")
        text = "the old house and the two dogs"
    return translator, translator.force(text, capture=Capture(residual=True))


def again(made: Made, *changes: do.Intervention) -> np.ndarray:
    """(steps,) log-probabilities of the same text under changes, by a run of its own."""
    translator, run = made
    whole = translator.whole(run.target_ids, run.start_id)
    return np.array(translator.force("", whole, interventions=changes).log_probs)


def test_a_word_s_effect_is_that_of_hiding_its_pieces_from_later_tokens(made: Made):
    translator, run = made
    effects = lenses.word_effect(translator, run)
    words = lenses.key_words(run)
    assert [word.text for word in words][:2]
    assert effects.shape == (len(run.steps), len(words))
    before = again(made)
    for column, word in zip(effects.T, words, strict=True):
        places = [*word.indices]
        cells = [(row, place) for row in range(places[-1] + 1, len(run.steps)) for place in places]
        if not cells:
            np.testing.assert_allclose(column, 0, atol=1e-5)
            continue
        moved = again(made, do.mask("decoder", forbid=cells)) - before
        np.testing.assert_allclose(column, moved, atol=2e-4)
        np.testing.assert_allclose(column[: places[-1] + 1], 0, atol=1e-5)  # not yet read


def test_the_last_kind_is_what_an_output_rests_on(made: Made):
    _, run = made
    assert run.config.last_kind is AttentionKind.DECODER
    cut = without(run, AttentionKind.DECODER, (1, 2), layer=0)
    assert (cut.keys, cut.after, cut.layer) == ((1, 2), 2, 0)


def test_a_difference_of_logits_falls_as_both_log_probabilities_do(made: Made):
    translator, run = made
    step = len(run.steps) - 2
    rival = next(
        token.token_id
        for token in run.steps[step].alternatives
        if token.token_id != run.steps[step].token_id
    )
    effects = lenses.on_difference(translator, run, step, rival)
    pairs = (run.target_ids, (*run.target_ids[:step], rival, *run.target_ids[step + 1 :]))
    for key in (0, 1, step - 1):
        change = do.mask("decoder", forbid=[("later", key)])
        moved = []
        for ids in pairs:
            whole = translator.whole(ids, run.start_id)
            with_it = translator.force("", whole).log_probs[step]
            without_it = translator.force("", whole, interventions=[change]).log_probs[step]
            moved.append(without_it - with_it)
        assert effects[key] == pytest.approx(moved[0] - moved[1], abs=3e-4)


def test_parts_read_at_each_key_are_those_of_all_heads(made: Made):
    translator, run = made
    step = 3
    token = run.steps[step].token_id
    by_key = lenses.by_key(translator.model, run, step, token)
    assert by_key.shape == (len(run.decoder_input_tokens),)
    assert not by_key[step + 1 :].any()
    whole = lenses.attribution(translator.model, run, step, token)
    biased = whole.keys[AttentionKind.DECODER].sum((0, 1))  # with the values' biases
    if translator.config.attention_biases is False or not has_value_biases(translator):
        np.testing.assert_allclose(by_key, biased, atol=1e-4)


def has_value_biases(translator: Translator) -> bool:
    bias = translator.model.attention(AttentionKind.DECODER, 0).v_proj.bias
    return bias is not None and bool(bias.any())


def test_training_shows_the_text_itself_and_what_the_model_writes_alone(made: Made):
    translator, run = made
    shown = lesson(translator, "", run.target_ids, run.start_id)
    np.testing.assert_allclose(
        [position.loss for position in shown.positions],
        [-value for value in run.log_probs],
        atol=2e-4,
    )
    assert [position.read for position in shown.positions] == [*run.decoder_input_tokens]
    assert len(shown.free) <= len(run.target_ids)


def test_a_network_reads_what_each_stack_reads(made: Made):
    translator, run = made
    ids = translator.ids_of(run)
    assert {*ids} == {"decoder"}
    batch = {side: torch.tensor([row]) for side, row in ids.items()}
    with torch.inference_mode():
        logits = translator.model.logits(translator.model.read(batch))[0].log_softmax(-1)
    own = logits[range(len(run.target_ids)), list(run.target_ids)].numpy()
    np.testing.assert_allclose(own, run.log_probs, atol=2e-4)


REFUSED: tuple[tuple[Callable[[Translator], object], type[Exception]], ...] = (
    (lambda model: model.force(3), TypeError),
    (lambda model: model.force("", []), ValueError),
)


@pytest.mark.parametrize(("ask", "error"), REFUSED)
def test_what_is_no_text_is_refused(made: Made, ask, error):
    with pytest.raises(error):
        ask(made[0])
