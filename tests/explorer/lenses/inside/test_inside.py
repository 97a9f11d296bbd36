"""One query of one head, one score, the parts of a model at one token: against torch, checks turned
red."""

import copy
import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from forged import forged
from random_models import random_model, random_recurrent

from explorer.lenses.inside import parts
from explorer.lenses.inside.inside import look_inside, product_spread, score_terms
from transformer import Translator
from transformer.config import AttentionKind, Score, Side, Sublayer
from transformer.run import NotCapturedError
from transformer.translator import retrace

TEXT = "one two three four five"
KINDS = ("encoder", "decoder", "cross")
PROOF = {"sub-layer input", "queries", "keys", "values", "products", "heads", "sub-layer output"}
PROOF |= {"residual stream", "same as decoded"}
HEAD, ROW = 3, 2


@pytest.fixture(scope="module", params=["pre", "post"])
def model(request, tokenizer):
    """One model shares its tables, the other has tables of its own."""
    tied = request.param == "pre"
    network = random_model(
        vocab_size=tokenizer.vocab_size, norm=request.param, tied_embeddings=tied
    )
    return Translator(network, tokenizer, name="random")


@pytest.fixture(scope="module")
def decoded(model):
    return model.translate(TEXT, max_length=6)


@pytest.fixture(scope="module")
def traced(model, decoded):
    return retrace(model, decoded)


def failed(network, traced, decoded=None, kind="cross"):
    """The names of the checks that do not pass."""
    audit = look_inside(network, traced, (kind, 1, HEAD), ROW, decoded).audit
    return {check.name for check in audit.checks if not check.passed}


def close(values, true):
    np.testing.assert_allclose(values, true, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_are_those_of_the_formulas_and_proved(model, decoded, traced, kind):
    """Recomputed from the model's parameters by torch, without the package's own attention."""
    inside = look_inside(model.model, traced, (kind, 1, HEAD), ROW, decoded)
    assert inside.audit.passed
    assert {check.name for check in inside.audit.checks} >= PROOF
    stack = model.model.encoder if kind == "encoder" else model.model.decoder
    name = "cross_attention" if kind == "cross" else "self_attention"
    attention = getattr(stack.layers[1], name)
    norm = getattr(stack.layers[1], f"{name}_residual").norm
    x = torch.tensor(inside.read)
    sources = torch.tensor(inside.sources)
    q = attention.q_proj(x).view(4, 8)[HEAD]
    k = attention.k_proj(sources).view(-1, 4, 8)[:, HEAD]
    v = attention.v_proj(sources).view(-1, 4, 8)[:, HEAD]
    scores = k @ q / math.sqrt(8)
    seen = scores.clone()
    seen[ROW + 1 if kind == "decoder" else len(seen) :] = -torch.inf
    for shown, true in (
        (inside.query, q),
        (inside.key, k),
        (inside.view.value, v),
        (inside.scaled, scores),
    ):
        close(shown, true)
    close(inside.outputs[HEAD], seen.softmax(0) @ v)
    close(inside.products / inside.divisor, scores)
    close(inside.read @ inside.w_q.weight + inside.w_q.bias, q)
    close(inside.w_k(inside.sources), k)
    close(inside.w_v(inside.sources), v)
    close(inside.update, attention.out_proj(torch.tensor(inside.outputs).reshape(-1)))
    rows = attention.out_proj.weight.T.view(4, 8, 32)
    close(inside.contributions, torch.einsum("hd,hdm->hm", torch.tensor(inside.outputs), rows))
    close(inside.w_o.weight, rows[HEAD])
    close(inside.contributions.sum(0) + inside.w_o.bias, inside.update)
    close(inside.added, inside.stream + inside.update)
    pre = model.config.norm == "pre"
    close(inside.next_stream, inside.added if pre else norm(torch.tensor(inside.added)))
    close(inside.read, norm(torch.tensor(inside.stream)) if pre else inside.stream)
    if kind == "cross":
        ids = torch.tensor([[*model.ids(TEXT), model.config.eos_id]])
        close(inside.sources, model.model.encode(ids)[0])
    assert (inside.row, inside.rule, inside.bias, inside.rotates) == (ROW, "", None, False)


@pytest.mark.parametrize(
    ("name", "row", "red"),
    [
        ("cross_attention.query", ROW, {"queries", "heads"}),
        ("cross_attention.key", 0, {"keys", "heads"}),
        ("cross_attention.value", 0, {"values", "heads"}),
        ("cross_attention.heads", ROW, {"heads", "sub-layer output"}),
        ("cross_attention.read", ROW, {"sub-layer input", "queries", "residual stream"}),
        ("cross_attention.output", ROW, {"sub-layer output", "residual stream"}),
        ("cross_attention.stream", ROW, {"residual stream"}),
    ],
)
def test_a_recorded_number_that_is_not_the_model_s_turns_its_checks_red(
    model, traced, name, row, red
):
    path = f"decoder.1.{name}"
    changed = traced.attention.tensors[path].clone()
    changed[..., row, 1] += 2
    trace = forged(traced.attention, **{path.replace(".", "__"): changed})
    assert failed(model.model, traced) == set()
    assert failed(model.model, replace(traced, attention=trace)) & PROOF == red


def test_another_run_is_not_taken_for_the_decoded_one(model, traced):
    other = model.force(TEXT, "two one two one", capture=True)
    assert failed(model.model, traced, other, "encoder") == set()
    assert failed(model.model, traced, other) == {"same as decoded"}


def test_second_passes_of_beams_and_forced_translations_are_audited(model):
    for run in (model.translate(TEXT, beam_size=3, max_length=5), model.force(TEXT, "two one")):
        assert look_inside(model.model, retrace(model, run), ("decoder", 0, 0), 1, run).audit.passed


@pytest.mark.parametrize("positions", ["none", "learned", "shaw", "t5", "rotary", "alibi"])
def test_rotations_and_biases_are_steps_of_their_own(tokenizer, positions):
    network = random_model(vocab_size=tokenizer.vocab_size, norm="pre", positions=positions)
    other = Translator(network, tokenizer, name=positions)
    decoded = other.translate(TEXT, max_length=5)
    traced = retrace(other, decoded)
    for kind in KINDS:
        inside = look_inside(other.model, traced, (kind, 1, HEAD), 3, decoded)
        own = kind != "cross"
        adds = own and positions in {"shaw", "t5", "alibi"}
        assert inside.audit.passed
        assert inside.rotates == (own and positions == "rotary")
        assert inside.rule == (positions if adds else "")
        assert np.allclose(inside.query, inside.view.query[0], atol=1e-5) != inside.rotates
        assert (inside.bias is not None) == adds
        if inside.bias is not None:
            close(inside.scaled + inside.bias, inside.view.scores[0])
            assert np.abs(inside.bias).max() > 0


def test_what_is_not_recorded_or_not_there_is_refused(model, decoded, traced):
    with pytest.raises(NotCapturedError, match="residual=True"):
        look_inside(model.model, decoded, ("cross", 1, HEAD), ROW)
    with pytest.raises(NotCapturedError, match="residual=True"):
        parts.feed_forward_part(model.model, decoded, "encoder", 0, 0)
    with pytest.raises(NotCapturedError):
        look_inside(
            model.model, model.translate(TEXT, max_length=3, capture=False), ("cross", 1, 0), 0
        )
    for which, row in ((("cross", 3, 0), 0), (("cross", 0, 4), 0), (("encoder", 0, 0), 99)):
        with pytest.raises(IndexError):
            look_inside(model.model, traced, which, row)


def test_one_pair_has_no_spread(tokenizer):
    model = Translator(random_model(vocab_size=tokenizer.vocab_size), tokenizer)
    record = model.translate("one", max_length=1).attention.layer("decoder", 0)
    spread = product_spread(record, 0)
    assert (spread.products, spread.pairs, spread.d_head) == (0, 1, 8)


@pytest.fixture(scope="module", params=[*get_args(Score), "transformer"])
def run(request, tokenizer, translator):
    if request.param == "transformer":
        return translator.force("one two three four", "four two")
    model = random_recurrent(request.param, vocab_size=tokenizer.vocab_size)
    return Translator(model, tokenizer, name=request.param).force(
        "one two three four five six", "six two"
    )


def test_the_terms_of_a_score_add_up_to_it_and_its_weight_is_the_model_s(run):
    view = run.head(AttentionKind.CROSS, 0, 0)
    for (query, key), score in np.ndenumerate(view.scores):
        found = score_terms(run.attention, (AttentionKind.CROSS, 0, 0), query, key)
        assert found.score == pytest.approx(score, abs=1e-5)
        assert found.terms.sum() == pytest.approx(score, abs=1e-5)
        sizes = np.abs(found.terms)[found.order]
        assert sizes.tolist() == sorted(sizes, reverse=True)
        if view.mask[query, key]:
            assert found.weight == pytest.approx(view.weights[query, key], abs=1e-5)
        local = None if view.centres is None else pytest.approx(view.centres[query])
        assert found.centre == local
        assert local is not None or found.factor == 1.0


# --- the parts of a model at one token -----------------------------------------------------------

POSITION = 2


def passed(checks):
    return bool(checks) and all(check.passed for check in checks)


def stack(model, side):
    return model.model.encoder if side == "encoder" else model.model.decoder


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
            assert not passed(
                parts.embedding_part(model.model, traced, side, position, token + 1).checks
            )


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_the_neighbours_of_an_embedding_are_those_of_the_largest_cosine(
    model: Translator, side: Side
):
    table = model.model.table(side).weight.detach().numpy().astype(float)
    rows = table / np.linalg.norm(table, axis=1, keepdims=True)
    for token in (5, 40):
        cosines = [(float(row @ rows[token]), i) for i, row in enumerate(rows) if i != token]
        nearest = sorted(cosines, reverse=True)[:4]
        found = parts.neighbours(model.model, side, token, 4)
        assert [i for i, _ in found] == [i for _, i in nearest]
        np.testing.assert_allclose(
            [cosine for _, cosine in found], [each for each, _ in nearest], atol=1e-5
        )
    assert len(parts.neighbours(model.model, side, 5, 10**6)) == len(rows) - 1


@pytest.mark.parametrize(
    "place", [("encoder", 0, "self_attention"), ("decoder", 2, "cross_attention")]
)
def test_a_layer_norm_at_a_token_is_torch_s(model, traced, place):
    sublayer = Sublayer(*place)
    part = parts.norm_part(model.model, traced, sublayer, POSITION)
    norm = getattr(
        stack(model, sublayer.side).layers[sublayer.layer], f"{sublayer.name}_residual"
    ).norm
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
    assert part.best[:3] == each.argsort(descending=True)[:3].tolist()
    assert part.gates is None
    assert passed(part.checks)


@pytest.mark.parametrize(("side", "count"), [("encoder", 1 + 2 * 2), ("decoder", 1 + 3 * 3)])
def test_the_stream_is_measured_after_every_sub_layer(model, traced, side, count):
    norms, checks = parts.stream_norms(traced, side, POSITION)
    after = [traced.stream(sublayer).stream for sublayer in [*norms][1:]]
    streams = [traced.trace.embeddings[side].input, *after]
    assert passed(checks)
    assert len(norms) == count
    assert next(iter(norms)) is None
    assert [*norms.values()] == pytest.approx([float(x[POSITION].norm()) for x in streams])
    sublayer = [*norms][2]
    trace = traced.stream(sublayer)
    total = (trace.before + trace.output)[POSITION].numpy()
    assert passed(parts.addition_check(model.model, traced, sublayer, POSITION, total))
    assert not passed(parts.addition_check(model.model, traced, sublayer, POSITION, total[::-1]))


def test_the_last_row_of_the_logit_lens_is_checked_with_the_step_and_its_rank_is_a_place_among_all(
    model, traced
):
    for step, written in enumerate(traced.steps):
        rows, checks = parts.logit_lens(model.model, traced, step)
        assert passed(checks)
        assert ([row.layers for row in rows], rows[-1].rank) == ([0, 1, 2, 3], 1)
        for row in rows:
            named = [guess.token_id for guess in row.best]
            assert (named.index(written.token_id) + 1 if written.token_id in named else 6) == min(
                row.rank, 6
            )
    steps = (traced.steps[1], traced.steps[0], *traced.steps[2:])
    assert not passed(parts.logit_lens(model.model, replace(traced, steps=steps), 0)[1])
