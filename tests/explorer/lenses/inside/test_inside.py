from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from closed_form import CASES
from random_models import random_model

from explorer.lenses.inside.inside import (
    Projection,
    audit_inside,
    layer_norm,
    look_inside,
    recorded_sublayer,
)
from transformer import Capture, Translator
from transformer.config import Sublayer
from transformer.run import NotCapturedError
from transformer.translator import retrace

TEXT = "one two three four five"
KINDS = ("encoder", "decoder", "cross")
PROOF = {
    "sub-layer input",
    "queries",
    "keys",
    "values",
    "products",
    "heads",
    "sub-layer output",
    "residual stream",
    "same as decoded",
}


@pytest.fixture(scope="module", params=["pre", "post"])
def model(request, tokenizer):
    network = random_model(vocab_size=tokenizer.vocab_size, norm=request.param, tied_embeddings=False)
    return Translator(network, tokenizer, name="random")


@pytest.fixture(scope="module")
def decoded(model):
    return model.translate(TEXT, max_length=6)


@pytest.fixture(scope="module")
def traced(model, decoded):
    return retrace(model, decoded)


def opened(model, traced, kind="cross", row=2, decoded=None):
    return look_inside(model.model, traced, (kind, 1, 3), row, decoded)


def test_a_second_pass_gives_what_decoding_gave(model, decoded, traced):
    assert traced.target_tokens == decoded.target_tokens
    assert traced.attention.audit().passed
    for kind in KINDS:
        first, second = decoded.attention.layer(kind, 1), traced.attention.layer(kind, 1)
        torch.testing.assert_close(second.output, first.output, atol=1e-5, rtol=1e-5)
    with pytest.raises(NotCapturedError):
        decoded.stream(Sublayer("encoder", 0, "self_attention"))


def test_a_second_pass_of_beams_and_forced_translations_is_audited(model):
    for translation in (model.translate(TEXT, beam_size=3, max_length=5), model.force(TEXT, "two one")):
        assert look_inside(
            model.model, retrace(model, translation), ("decoder", 0, 0), 1, translation
        ).audit.passed


@pytest.mark.parametrize("kind", KINDS)
def test_everything_inside_a_head_is_proved(model, decoded, traced, kind):
    inside = opened(model, traced, kind, 3, decoded)
    assert inside.audit.passed
    assert {check.name for check in inside.audit.checks} >= PROOF


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_are_those_of_the_formulas(model, traced, kind):
    """Recomputed from the model's parameters by torch, without the package's own attention."""
    inside, head, row = opened(model, traced, kind), 3, 2
    stack = model.model.encoder if kind == "encoder" else model.model.decoder
    name = "cross_attention" if kind == "cross" else "self_attention"
    attention = getattr(stack.layers[1], name)
    x, sources = torch.tensor(inside.read), torch.tensor(inside.sources)
    q = attention.q_proj(x).view(4, 8)[head]
    k = attention.k_proj(sources).view(-1, 4, 8)[:, head]
    v = attention.v_proj(sources).view(-1, 4, 8)[:, head]
    scores = k @ q / math.sqrt(8)
    if kind == "decoder":
        scores[row + 1 :] = -torch.inf
    b = scores.softmax(0) @ v
    for shown, true in (
        (inside.query, q),
        (inside.key, k),
        (inside.view.value, v),
        (inside.outputs[head], b),
    ):
        np.testing.assert_allclose(shown, true, atol=2e-5)
    update = attention.out_proj(torch.tensor(inside.outputs).reshape(-1))
    np.testing.assert_allclose(inside.update, update, atol=2e-5)
    np.testing.assert_allclose(inside.added, inside.stream + inside.update, atol=1e-6)
    norm = getattr(stack.layers[1], f"{name}_residual").norm
    leaves = inside.added if model.config.norm == "pre" else norm(torch.tensor(inside.added))
    np.testing.assert_allclose(inside.next_stream, leaves, atol=2e-5)
    reads = inside.stream if model.config.norm == "post" else norm(torch.tensor(inside.stream))
    np.testing.assert_allclose(inside.read, reads, atol=2e-5)


def test_cross_attention_reads_the_encoder_s_output(model, traced):
    ids = torch.tensor([[*model.ids(TEXT), model.config.eos_id]])
    np.testing.assert_allclose(opened(model, traced).sources, model.model.encode(ids)[0], atol=2e-5)


def test_contributions_of_all_heads_and_the_bias_are_the_update(model, traced):
    inside = opened(model, traced, "encoder")
    np.testing.assert_allclose(inside.contributions.sum(0) + inside.w_o.bias, inside.update, atol=2e-5)
    np.testing.assert_allclose(inside.outputs[3] @ inside.w_o.weight, inside.contributions[3], atol=2e-5)


def nudged(array):
    changed = np.array(array)
    changed.flat[changed.size // 2] += 0.05
    return changed


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("stream", "sub-layer input"),
        ("read", "queries"),
        ("sources", "keys"),
        ("sources", "values"),
        ("query", "queries"),
        ("key", "keys"),
        ("products", "products"),
        ("outputs", "heads"),
        ("outputs", "sub-layer output"),
        ("contributions", "heads"),
        ("update", "sub-layer output"),
        ("update", "residual stream"),
        ("added", "residual stream"),
        ("next_stream", "residual stream"),
    ],
)
def test_one_changed_number_turns_the_audit_red(model, traced, name, check):
    inside = opened(model, traced)
    place = recorded_sublayer(model.model, traced, inside.view.kind, 1)
    assert all(each.passed for each in audit_inside(inside, place))
    forged = replace(inside, **{name: nudged(getattr(inside, name))})
    failed = {each.name for each in audit_inside(forged, place) if not each.passed}
    assert check in failed


@pytest.mark.parametrize(
    ("name", "check"), [("w_q", "queries"), ("w_k", "keys"), ("w_v", "values"), ("w_o", "heads")]
)
@pytest.mark.parametrize("mutation", ["weight", "bias", "transposed", "another head's"])
def test_forged_projections_turn_the_audit_red(model, traced, name, check, mutation):
    inside = opened(model, traced)
    place = recorded_sublayer(model.model, traced, inside.view.kind, 1)
    honest = getattr(inside, name)
    forged = {
        "weight": Projection(nudged(honest.weight), honest.bias),
        "bias": Projection(honest.weight, nudged(honest.bias)),
        "transposed": Projection(honest.weight.T.reshape(honest.weight.shape), honest.bias),
        "another head's": getattr(look_inside(model.model, traced, ("cross", 1, 0), 2), name),
    }[mutation]
    checks = audit_inside(replace(inside, **{name: forged}), place)
    expected = "sub-layer output" if (name, mutation) == ("w_o", "bias") else check
    assert expected in {each.name for each in checks if not each.passed}


@pytest.mark.parametrize("positions", ["none", "learned", "shaw", "t5", "rotary", "alibi"])
def test_rotations_and_biases_are_steps_of_their_own(tokenizer, positions):
    network = random_model(vocab_size=tokenizer.vocab_size, norm="pre", positions=positions)
    other = Translator(network, tokenizer, name=positions)
    decoded = other.translate(TEXT, max_length=5)
    traced = retrace(other, decoded)
    for kind in KINDS:
        inside = look_inside(other.model, traced, (kind, 1, 3), 3, decoded)
        assert inside.audit.passed
        own = kind != "cross"
        assert inside.rotates == (own and positions == "rotary")
        assert (inside.bias is not None) == (own and positions in {"shaw", "t5", "alibi"})
        assert np.allclose(inside.query, inside.view.query[0], atol=1e-5) != inside.rotates
        if inside.bias is not None:
            np.testing.assert_allclose(inside.scaled + inside.bias, inside.view.scores[0], atol=1e-5)
            assert np.abs(inside.bias).max() > 0


def test_another_run_is_not_taken_for_the_decoded_one(model, traced):
    other = model.force(TEXT, "two one two one", capture=True)
    checks = look_inside(model.model, traced, ("encoder", 0, 0), 1, other).audit
    assert checks.passed
    assert not look_inside(model.model, traced, ("cross", 0, 0), 1, other).audit.passed


def test_layer_norm_is_torch_s():
    norm = torch.nn.LayerNorm(16)
    torch.nn.init.normal_(norm.weight, generator=torch.Generator().manual_seed(0))
    x = torch.randn(3, 16, generator=torch.Generator().manual_seed(1))
    np.testing.assert_allclose(layer_norm(norm, x.numpy()), norm(x).detach(), atol=1e-6)


def test_known_heads_are_opened_at_the_known_key(solved):
    case = CASES[solved.name]
    traced = retrace(solved, solved.translate(case.sentence))
    for kind in KINDS:
        for head in range(2):
            for row, key in enumerate(case.keys(kind, head)):
                inside = look_inside(solved.model, traced, (kind, 0, head), row)
                assert inside.audit.passed
                seen = np.where(inside.view.mask[0], inside.products, -np.inf)
                assert int(np.argmax(seen)) == key
                np.testing.assert_allclose(inside.outputs[head], inside.view.value[key], atol=0.1)


def test_without_the_residual_stream_the_error_says_what_to_do(model, decoded):
    with pytest.raises(NotCapturedError, match="residual=True"):
        opened(model, decoded)
    with pytest.raises(NotCapturedError):
        opened(model, model.translate(TEXT, max_length=3, capture=False))
    assert model.translate(TEXT, max_length=3, capture=Capture(residual=True)).stream(
        Sublayer("decoder", 1, "cross_attention")
    )
