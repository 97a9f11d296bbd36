from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from closed_form import CASES
from forged import forged
from random_models import random_model

from explorer.lenses.inside import logit_lens, parts
from transformer import Translator
from transformer.config import Sublayer
from transformer.run import NotCapturedError
from transformer.storage.card import paragraph, scores
from transformer.translator import retrace

TEXT = "one two three four five"
POSITION = 2


@pytest.fixture(scope="module", params=["pre", "post", "separate"])
def model(request, tokenizer):
    norm = "pre" if request.param == "separate" else request.param
    network = random_model(
        vocab_size=tokenizer.vocab_size, norm=norm, tied_embeddings=request.param != "separate"
    )
    return Translator(network, tokenizer, name="random")


@pytest.fixture(scope="module")
def traced(model):
    return retrace(model, model.translate(TEXT, max_length=6))


def passed(checks):
    return bool(checks) and all(check.passed for check in checks)


def test_an_embedding_is_the_row_times_the_factor_plus_the_position(model, traced):
    token = model.ids(TEXT)[POSITION]
    part = parts.embedding_part(model.model, traced, "encoder", POSITION, token)
    assert passed(part.checks)
    table = model.model.embedding.weight
    np.testing.assert_allclose(part.scaled, table[token] * model.config.d_model**0.5, atol=1e-5)
    np.testing.assert_allclose(part.input, part.scaled + part.position, atol=1e-5)
    wrong = parts.embedding_part(model.model, traced, "encoder", POSITION, token + 1)
    assert not passed(wrong.checks)


def test_decoder_tokens_enter_shifted_right(model, traced):
    read = [model.config.bos_id, *(step.token_id for step in traced.steps)]
    for position in range(3):
        assert passed(parts.embedding_part(model.model, traced, "decoder", position, read[position]).checks)


@pytest.mark.parametrize(
    "sublayer",
    [("encoder", 0, "self_attention"), ("decoder", 2, "cross_attention"), ("decoder", 1, "feed_forward")],
)
def test_a_layer_norm_at_a_token_is_torch_s(model, traced, sublayer):
    place = Sublayer(*sublayer)
    part = parts.norm_part(model.model, traced, place, POSITION)
    assert passed(part.checks)
    assert part.mean == pytest.approx(float(part.before.mean()), abs=1e-6)
    assert part.deviation == pytest.approx(float(np.std(part.before)), abs=1e-5)
    assert part.normalised.mean() == pytest.approx(0, abs=1e-5)
    assert part.normalised.std() == pytest.approx(1, abs=1e-3)
    stack = model.model.encoder if place.side == "encoder" else model.model.decoder
    norm = getattr(stack.layers[place.layer], f"{place.name}_residual").norm
    np.testing.assert_allclose(part.after, norm(torch.tensor(part.before)), atol=1e-5)
    forged = replace(part, weight=part.weight * 1.01)
    assert not passed(parts.proved_norm(forged, norm).checks)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_the_last_norm_is_there_with_pre_norm_only(model, traced, side):
    part = parts.final_norm_part(model.model, traced, side, POSITION)
    if model.config.norm == "post":
        assert part is None
        return
    assert part is not None
    assert passed(part.checks)
    ids = torch.tensor([[*model.ids(TEXT), model.config.eos_id]])
    if side == "encoder":
        np.testing.assert_allclose(part.after, model.model.encode(ids)[0, POSITION], atol=1e-5)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_units_of_the_feed_forward_network_give_its_update(model, traced, side):
    part = parts.feed_forward_part(model.model, traced, side, 1, POSITION)
    assert passed(part.checks)
    stack = model.model.encoder if side == "encoder" else model.model.decoder
    network = stack.layers[1].feed_forward
    units = network.activation(network.inner(torch.tensor(part.read)))
    np.testing.assert_allclose(part.units, units, atol=1e-5)
    np.testing.assert_allclose(network.outer(units), part.update, atol=1e-5)
    best = part.most_active(3)
    each = units[:, None] * network.outer.weight.T
    np.testing.assert_allclose(part.added, each.norm(dim=1), atol=1e-5)
    assert list(best) == each.norm(dim=1).argsort(descending=True)[:3].tolist()


def test_the_stream_is_measured_after_every_sub_layer(model, traced):
    for side, count in (("encoder", 1 + 2 * 2), ("decoder", 1 + 3 * 3)):
        points, checks = parts.stream_norms(traced, side, POSITION)
        assert passed(checks)
        assert len(points) == count
        assert points[0].sublayer is None
        assert points[-1].norm == pytest.approx(float(parts.leaves(traced, side)[POSITION].norm()))


def test_a_stream_that_breaks_at_a_sub_layer_fails_its_check(model, traced):
    residuals = dict(traced.attention.residuals)
    place = Sublayer("decoder", 1, "cross_attention")
    broken = residuals[place]
    residuals[place] = replace(broken, read=broken.read.roll(1, dims=0), output=broken.output + 1)
    changed = replace(traced, attention=forged(traced.attention, residuals=residuals))
    assert not passed(parts.stream_norms(changed, "decoder", POSITION)[1])
    assert passed(parts.stream_norms(changed, "encoder", POSITION)[1])


def test_the_last_row_of_the_logit_lens_is_the_model_s_distribution(model, traced):
    for step in range(len(traced.steps)):
        rows, checks = logit_lens.logit_lens(model.model, traced, step)
        assert passed(checks)
        assert [row.layers for row in rows] == [0, 1, 2, 3]
        best = traced.steps[step].alternatives[:5]
        assert [guess.token_id for guess in rows[-1].best] == [each.token_id for each in best]
        assert rows[-1].chosen == pytest.approx(np.exp(traced.log_probs[step]), abs=1e-5)
        assert rows[-1].rank == 1


def test_a_lens_of_another_step_fails_its_check(model, traced):
    steps = (traced.steps[1], traced.steps[0], *traced.steps[2:])
    _, checks = logit_lens.logit_lens(model.model, replace(traced, steps=steps), 0)
    assert not passed(checks)


def test_neighbours_have_the_largest_cosines(model):
    token = model.ids(TEXT)[0]
    found = parts.neighbours(model.model, "decoder", token)
    table = parts.embedding_table(model.model, "decoder").numpy()
    cosines = table @ table[token] / np.linalg.norm(table, axis=1) / np.linalg.norm(table[token])
    cosines[token] = -2
    assert [each.token_id for each in found] == np.argsort(-cosines)[:8].tolist()
    np.testing.assert_allclose([each.cosine for each in found], np.sort(cosines)[::-1][:8], atol=1e-5)


def test_known_models_read_the_translation_off_their_last_layer(solved):
    case = CASES[solved.name]
    traced = retrace(solved, solved.translate(case.sentence))
    for step, token in enumerate(case.target_tokens):
        rows, checks = logit_lens.logit_lens(solved.model, traced, step)
        assert passed(checks)
        assert solved.pieces([rows[-1].best[0].token_id]) == (token,)


def test_without_the_residual_stream_the_error_says_what_to_do(model):
    with pytest.raises(NotCapturedError, match="residual=True"):
        parts.feed_forward_part(model.model, model.translate(TEXT, max_length=3), "encoder", 0, 0)


CARD = """---
model-index:
- name: a
  results:
  - task: {type: translation}
    dataset: {type: d, name: Some test}
    metrics:
    - {type: bleu, value: 12.5, name: "sacreBLEU, greedy"}
---

# A model

## Training

Two hours
on one core.

## Data
"""


def test_scores_and_paragraphs_are_read_off_a_card():
    (score,) = scores(CARD)
    assert (score.dataset, score.metric, score.value, score.how) == (
        "Some test",
        "bleu",
        12.5,
        "sacreBLEU, greedy",
    )
    assert paragraph(CARD, "Training") == "Two hours on one core."
    assert paragraph(CARD, "Elsewhere") == ""


@pytest.mark.parametrize(
    "card",
    [
        "",
        "# x",
        "---\n: [\n---\n",
        "---\n- a\n---\n",
        CARD.replace("12.5", "much"),
        CARD.replace("- name: a", "- 3"),
    ],
)
def test_cards_without_readable_scores_have_none(card):
    assert scores(card) == ()
