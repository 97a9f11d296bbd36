"""The parts of a model at one token, against torch's own modules; and the logit lens."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from closed_form import CASES
from forged import forged
from random_models import random_model

from explorer.lenses.inside import parts
from transformer import Translator
from transformer.config import Sublayer
from transformer.run import NotCapturedError
from transformer.translator import retrace

TEXT = "one two three four five"
POSITION = 2


@pytest.fixture(scope="module", params=["pre", "post", "separate"])
def model(request, tokenizer):
    norm = "pre" if request.param == "separate" else request.param
    tied = request.param != "separate"
    return Translator(
        random_model(vocab_size=tokenizer.vocab_size, norm=norm, tied_embeddings=tied),
        tokenizer,
        name="random",
    )


@pytest.fixture(scope="module")
def traced(model):
    return retrace(model, model.translate(TEXT, max_length=6))


def passed(checks):
    return bool(checks) and all(check.passed for check in checks)


def stack(model, side):
    return model.model.encoder if side == "encoder" else model.model.decoder


def close(shown, true):
    np.testing.assert_allclose(shown, true, atol=1e-5)


def test_an_embedding_is_the_row_times_the_factor_plus_the_position(model, traced):
    read = {"encoder": model.ids(TEXT), "decoder": [step.token_id for step in traced.steps]}
    read["decoder"].insert(0, model.config.bos_id)  # decoder tokens enter shifted right
    for side, ids in read.items():
        for position, token in enumerate(ids[:3]):
            part = parts.embedding_part(model.model, traced, side, position, token)
            close(part.row, model.model.table(side).weight.detach()[token])
            close(part.scaled, part.row * part.factor)
            close(part.input, part.scaled + part.position)
            assert part.factor == pytest.approx(model.config.d_model**0.5)
            assert passed(part.checks)
            assert not passed(parts.embedding_part(model.model, traced, side, position, token + 1).checks)


@pytest.mark.parametrize("place", [("encoder", 0, "self_attention"), ("decoder", 2, "cross_attention")])
def test_a_layer_norm_at_a_token_is_torch_s(model, traced, place):
    sublayer = Sublayer(*place)
    part = parts.norm_part(model.model, traced, sublayer, POSITION)
    norm = getattr(stack(model, sublayer.side).layers[sublayer.layer], f"{sublayer.name}_residual").norm
    trace = traced.stream(sublayer)
    before = trace.before if model.config.norm == "pre" else trace.before + trace.output
    close(part.before, before[POSITION])
    close(part.after, norm(before[POSITION]).detach())
    assert part.mean == pytest.approx(float(part.before.mean()), abs=1e-6)
    assert part.deviation == pytest.approx(float(np.std(part.before)), abs=1e-5)
    assert part.normalised.mean() == pytest.approx(0, abs=1e-5)
    assert part.normalised.std() == pytest.approx(1, abs=1e-3)
    close(part.weight * part.normalised + part.bias, part.after)
    assert passed(part.checks)
    other = copy.deepcopy(model.model)
    with torch.no_grad():
        other.residual(sublayer).norm.weight *= 1.01
    assert not passed(parts.norm_part(other, traced, sublayer, POSITION).checks)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_the_last_norm_is_there_with_pre_norm_only(model, traced, side):
    part = parts.final_norm_part(model.model, traced, side, POSITION)
    assert (part is None) == (model.config.norm == "post")
    if part is not None:
        assert passed(part.checks)
        close(part.after, stack(model, side).final_norm(torch.tensor(part.before)).detach())
        if side == "encoder":
            ids = torch.tensor([[*model.ids(TEXT), model.config.eos_id]])
            close(part.after, model.model.encode(ids)[0, POSITION].detach())


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_units_of_the_feed_forward_network_give_its_update(model, traced, side):
    part = parts.feed_forward_part(model.model, traced, side, 1, POSITION)
    network = stack(model, side).layers[1].feed_forward
    units = network.activation(network.inner(torch.tensor(part.read))).detach()
    close(part.units, units)
    close(part.update, network.outer(units).detach())
    each = (units[:, None] * network.outer.weight.T).detach().norm(dim=1)
    close(part.added, each)
    assert part.most_active(3) == tuple(each.argsort(descending=True)[:3].tolist())
    assert part.gates is None
    assert passed(part.checks)


@pytest.mark.parametrize(("side", "count"), [("encoder", 1 + 2 * 2), ("decoder", 1 + 3 * 3)])
def test_the_stream_is_measured_after_every_sub_layer(model, traced, side, count):
    points, checks = parts.stream_norms(traced, side, POSITION)
    after = [traced.stream(point.sublayer).stream for point in points[1:]]
    streams = [parts.embedding_trace(traced, side).input, *after]
    assert passed(checks)
    assert len(points) == count
    assert points[0].sublayer is None
    assert [point.norm for point in points] == pytest.approx([float(x[POSITION].norm()) for x in streams])
    sublayer = points[2].sublayer
    trace = traced.stream(sublayer)
    total = (trace.before + trace.output)[POSITION].numpy()
    assert passed(parts.addition_check(model.model, traced, sublayer, POSITION, total))
    assert not passed(parts.addition_check(model.model, traced, sublayer, POSITION, total[::-1]))


def test_a_stream_that_breaks_at_a_sub_layer_fails_its_check(model, traced):
    residuals = dict(traced.attention.residuals)
    place = Sublayer("decoder", 1, "cross_attention")
    broken = residuals[place]
    residuals[place] = replace(broken, read=broken.read.roll(1, dims=0), output=broken.output + 1)
    changed = replace(traced, attention=forged(traced.attention, residuals=residuals))
    assert not passed(parts.stream_norms(changed, "decoder", POSITION)[1])
    assert passed(parts.stream_norms(changed, "encoder", POSITION)[1])


def test_the_last_row_of_the_logit_lens_is_the_model_s_distribution(model, traced):
    for step, written in enumerate(traced.steps):
        rows, checks = parts.logit_lens(model.model, traced, step)
        best = [(each.token_id, np.exp(each.log_prob)) for each in written.alternatives[:5]]
        assert passed(checks)
        assert [row.layers for row in rows] == [0, 1, 2, 3]
        assert [guess.token_id for guess in rows[-1].best] == [token for token, _ in best]
        assert [guess.probability for guess in rows[-1].best] == pytest.approx([p for _, p in best], abs=1e-5)
        assert rows[-1].chosen == pytest.approx(np.exp(traced.log_probs[step]), abs=1e-5)
        assert rows[-1].rank == 1
        for row in rows:
            named = [guess.token_id for guess in row.best]
            assert (named.index(written.token_id) + 1 if written.token_id in named else 6) == min(row.rank, 6)
    steps = (traced.steps[1], traced.steps[0], *traced.steps[2:])
    assert not passed(parts.logit_lens(model.model, replace(traced, steps=steps), 0)[1])


def test_known_models_read_the_translation_off_their_last_layer(solved):
    case = CASES[solved.name]
    traced = retrace(solved, solved.translate(case.sentence))
    for step, token in enumerate(case.target_tokens):
        rows, checks = parts.logit_lens(solved.model, traced, step)
        assert passed(checks)
        assert solved.pieces([rows[-1].best[0].token_id]) == (token,)


def test_neighbours_have_the_largest_cosines(model):
    token = model.ids(TEXT)[0]
    table = parts.embedding_table(model.model, "decoder").numpy()
    cosines = table @ table[token] / np.linalg.norm(table, axis=1) / np.linalg.norm(table[token])
    cosines[token] = -2
    order = np.argsort(-cosines)[:8]
    found = parts.neighbours(model.model, "decoder", token)
    assert [each.token_id for each in found] == order.tolist()
    close([each.cosine for each in found], cosines[order])


def test_without_the_residual_stream_the_error_says_what_to_do(model):
    with pytest.raises(NotCapturedError, match="residual=True"):
        parts.feed_forward_part(model.model, model.translate(TEXT, max_length=3), "encoder", 0, 0)
