from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from transformer import AttentionKind, Hook

TEXT = "one two three four"


def uniform(values, **_):
    return torch.full_like(values, 1 / values.shape[-1])


def only_first(values, **_):
    return torch.where(torch.arange(values.shape[-1]) == 0, values, -1e9)


def test_replaced_weights_are_used_and_stored(translator):
    hook = Hook(uniform, kind=AttentionKind.CROSS, layer=1)
    hooked = translator.translate(TEXT, max_length=8, hooks=[hook])
    weights = hooked.attention.weights("cross", 1)
    np.testing.assert_allclose(weights, 1 / len(hooked.source_tokens))
    assert hooked.attention.layer("cross", 1).replaced_rows.all()
    value = hooked.attention.layer("cross", 1).value
    np.testing.assert_allclose(hooked.head("cross", 1, 2).output, value[2].mean(0).expand(8, -1), atol=1e-5)


def test_replaced_scores_are_used_and_stored(translator):
    hooked = translator.translate(
        TEXT, max_length=8, hooks=[Hook(only_first, on="scores", kind="cross", layer=0)]
    )
    assert (hooked.attention.weights("cross", 0)[:, :, 0] == 1.0).all()
    assert hooked.attention.layer("cross", 0).replaced_rows.all()


def test_a_hook_changes_the_translation_and_its_trace_still_passes_the_audit(translator):
    plain = translator.translate(TEXT, max_length=8)
    hooked = translator.translate(TEXT, max_length=8, hooks=[Hook(uniform, kind=AttentionKind.CROSS)])
    assert hooked.log_probs != plain.log_probs
    assert hooked.attention.audit().passed
    assert hooked.head("cross", 1, 0).audit.passed


def test_layers_without_a_hook_keep_no_replaced_rows(translator):
    hooked = translator.translate(
        TEXT, max_length=4, hooks=[Hook(uniform, kind=AttentionKind.CROSS, layer=1)]
    )
    for kind, layer in hooked.attention.places:
        assert (hooked.attention.layer(kind, layer).replaced_rows is None) == ((kind, layer) != ("cross", 1))


@pytest.mark.parametrize("on", ["scores", "weights"])
def test_only_the_hooked_layer_runs_explicitly(translator, monkeypatch, on):
    fused = F.scaled_dot_product_attention
    calls = []

    def counted(*args, **kwargs):
        calls.append(1)
        return fused(*args, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    hook = Hook(lambda values, **_: values, on=on, kind=AttentionKind.DECODER, layer=2)
    translator.translate(TEXT, max_length=5)
    plain = len(calls)
    calls.clear()
    translator.translate(TEXT, max_length=5, hooks=[hook])
    assert plain == 2 + 5 * (3 + 3)
    assert len(calls) == plain - 5


def test_a_hook_on_some_rows_and_heads_marks_only_those(translator):
    def second_row_of_head_three(values, *, query_positions, **_):
        rows = (query_positions == 1)[:, None] & (torch.arange(4) == 3)[:, None, None]
        return torch.where(rows, 1 / values.shape[-1], values)

    hooked = translator.translate(
        TEXT, max_length=4, hooks=[Hook(second_row_of_head_three, kind="cross", layer=0)]
    )
    assert hooked.attention.layer("cross", 0).replaced_rows.nonzero().tolist() == [[3, 1]]
    assert hooked.attention.audit().passed


def test_a_hook_learns_kind_layer_and_positions(translator):
    seen = set()

    def note(values, *, kind, layer, query_positions):
        assert values.shape[2] == len(query_positions)
        seen.add((str(kind), layer, tuple(query_positions.tolist())))
        return values

    translator.translate("one", max_length=2, capture=False, hooks=[note])
    assert ("encoder", 1, (0, 1)) in seen
    assert {("decoder", 2, (0,)), ("decoder", 2, (1,)), ("cross", 0, (1,))} <= seen


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("capture", [True, False])
def test_a_hook_that_changes_nothing_changes_nothing(translator, beam_size, capture):
    def leave(values, **_):
        return values

    options = {"beam_size": beam_size, "max_length": 8}
    plain = translator.translate(TEXT, **options)
    hooked = translator.translate(TEXT, **options, capture=capture, hooks=[leave])
    assert hooked.target_tokens == plain.target_tokens
    np.testing.assert_allclose(hooked.log_probs, plain.log_probs, atol=1e-5)


def test_hooks_act_in_beam_search_and_in_forced_passes(translator):
    hook = Hook(uniform, kind=AttentionKind.CROSS, layer=0)
    for hooked in (
        translator.translate(TEXT, beam_size=3, max_length=8, hooks=[hook]),
        translator.force(TEXT, "eins zwei", hooks=[hook]),
    ):
        np.testing.assert_allclose(hooked.attention.weights("cross", 0), 1 / 5)
        assert hooked.attention.audit().passed


@pytest.mark.parametrize("kind", list(AttentionKind))
def test_the_audit_s_second_pass_runs_with_the_same_hooks(translator, kind):
    def mostly_first(values, **_):
        first = (torch.arange(values.shape[-1]) == 0).float()
        return 0.5 * values + 0.5 * first

    hooked = translator.translate(TEXT, max_length=6, hooks=[Hook(mostly_first, kind=kind)])
    assert hooked.log_probs != translator.translate(TEXT, max_length=6).log_probs
    assert hooked.attention.audit().passed


def test_several_hooks_act_in_their_order(translator):
    def double(values, **_):
        return 2 * values

    hooks = [Hook(uniform, kind="cross", layer=0), Hook(double, kind="cross", layer=0)]
    hooked = translator.force(TEXT, "eins", hooks=hooks)
    np.testing.assert_allclose(hooked.attention.weights("cross", 0), 2 / 5)
    assert not hooked.attention.audit().passed


@pytest.mark.parametrize("result", [lambda values: values[..., 1:], lambda values: values[0], lambda _: None])
def test_a_wrong_result_of_a_hook_is_one_sentence(translator, result):
    with pytest.raises(ValueError, match="hook on encoder attention returned") as caught:
        translator.translate(TEXT, hooks=[lambda values, **_: result(values)])
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_a_hook_on_something_else_is_refused():
    with pytest.raises(ValueError, match="'scores' or 'weights'"):
        Hook(uniform, on="weigths")
