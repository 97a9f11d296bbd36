from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from forged import forged

from transformer import AttentionKind
from transformer.audit import audit, audit_layer, audit_log_probs, audit_view, merged
from transformer.trace import LayerTrace
from transformer.view import Check

TEXT = "one two three four five"


@pytest.fixture(scope="module")
def translation(translator):
    return translator.translate(TEXT, max_length=6)


@pytest.fixture(scope="module")
def layer(translation):
    """Encoder self-attention: square, so that a transposed map fits."""
    return translation.attention.layer("encoder", 1)


def failed(checks):
    return {check.name for check in checks if not check.passed}


class Forged(LayerTrace):
    """A trace that derives weights other than those the model used."""

    forge = staticmethod(lambda weights: weights)

    def weights(self, heads, window=None):
        return self.forge(super().weights(heads, window).clone())


def with_changed(layer, forge):
    trace = Forged(**{name: getattr(layer, name) for name in layer.__dataclass_fields__})
    object.__setattr__(trace, "forge", forge)
    return trace


def change_one(weights):
    weights[0, 2, 3] += 0.01
    return weights


def test_an_honest_trace_passes_every_check(translation):
    report = translation.attention.audit()
    assert report.passed
    assert {check.name for check in report.checks} == {
        "row sums",
        "masked weights",
        "weights",
        "outputs",
        "embeddings",
        "tokens",
        "positions",
        "log-probabilities",
        "places",
    }
    worst = {each.name: each.value for each in report.checks}
    assert worst["row sums"] < 1e-5
    assert worst["outputs"] < 1e-4


@pytest.mark.parametrize(
    ("mutation", "forge"),
    [
        ("transposed", lambda weights: weights.transpose(-1, -2)),
        ("rows shifted", lambda weights: weights.roll(1, dims=-2)),
        ("columns shifted", lambda weights: weights.roll(1, dims=-1)),
        ("heads shifted", lambda weights: weights.roll(1, dims=0)),
        ("one changed", change_one),
        ("uniform", lambda weights: torch.full_like(weights, 1 / weights.shape[-1])),
        ("not a number", lambda weights: weights * torch.nan),
    ],
)
def test_a_forged_map_fails(layer, mutation, forge):
    assert "weights" in failed(audit_layer(with_changed(layer, forge)))


def test_weights_that_do_not_sum_to_one_fail(layer):
    assert "row sums" in failed(audit_layer(with_changed(layer, lambda weights: weights * 1.001)))


def test_a_weight_under_the_mask_fails(translation):
    decoder = translation.attention.layer("decoder", 0)
    assert failed(audit_layer(with_changed(decoder, lambda weights: weights + 1e-9))) == {"masked weights"}


def test_a_dropped_mask_fails(translation):
    decoder = translation.attention.layer("decoder", 0)
    assert "outputs" in failed(audit_layer(replace(decoder, causal=False)))


def test_a_mask_that_was_not_there_fails(layer):
    assert "outputs" in failed(audit_layer(replace(layer, causal=True)))
    padding = torch.ones(layer.shape[2], dtype=torch.bool)
    padding[-1] = False
    assert "outputs" in failed(audit_layer(replace(layer, key_padding=padding)))


@pytest.mark.parametrize("name", ["query", "key", "value", "output"])
def test_shifted_or_changed_records_fail(layer, name):
    record = getattr(layer, name)
    assert "outputs" in failed(audit_layer(replace(layer, **{name: record.roll(1, dims=1)})))
    assert "outputs" in failed(audit_layer(replace(layer, **{name: record * 1.5})))


@pytest.mark.parametrize("name", ["query", "key", "value", "output"])
def test_one_number_that_is_none_fails(layer, name):
    record = getattr(layer, name).clone()
    record[1, 2, 3] = torch.nan
    assert "outputs" in failed(audit_layer(replace(layer, **{name: record})))


def test_a_row_that_sees_no_key_must_be_zeros():
    width = (1, 3, 4)
    query, key, value = torch.randn(3, *width, generator=torch.Generator().manual_seed(0))
    nothing = torch.zeros(3, dtype=torch.bool)
    honest = LayerTrace("cross", 0, query, key, value, torch.zeros(width), nothing, causal=False)
    assert not failed(audit_layer(honest))
    assert failed(audit_layer(replace(honest, output=value))) == {"outputs"}
    assert "row sums" in failed(audit_layer(with_changed(honest, lambda weights: weights + 1 / 3)))


def test_a_stored_hook_row_is_checked_against_the_output(translator):
    def uniform(values, first):
        return torch.full_like(values, 1 / values.shape[-1])

    hooks = {"decoder.0.cross_attention.weights": uniform}
    hooked = translator.translate(TEXT, max_length=3, hooks=hooks).attention.layer("cross", 0)
    assert not failed(audit_layer(hooked))
    assert "outputs" in failed(audit_layer(replace(hooked, used_weights=None)))
    assert "outputs" in failed(audit_layer(replace(hooked, used_weights=hooked.used_weights.roll(1, -1) * 2)))


@pytest.mark.parametrize("side", ["encoder", "decoder"])
@pytest.mark.parametrize("part", ["tokens", "positions", "input"])
@pytest.mark.parametrize("change", [lambda x: x.roll(1, dims=0), lambda x: x + 1e-3, lambda x: x * torch.nan])
def test_a_changed_embedding_fails(translation, side, part, change):
    trace = translation.attention
    embedding = trace.embeddings[side]
    other = replace(embedding, **{part: change(getattr(embedding, part))})
    mutated = forged(trace, embeddings={**trace.embeddings, side: other})
    assert failed(audit(mutated, mutated.places).checks) == {"embeddings"}
    assert not mutated.audit().passed


def test_a_changed_log_probability_fails():
    assert audit_log_probs((-1.0, -2.0), (-1.0, -2.0), 1e-4).passed
    for replayed in ((-1.0, -2.001), (-1.0,), (-1.0, math.nan), (-2.0, -1.0)):
        assert not audit_log_probs((-1.0, -2.0), replayed, 1e-4).passed


def test_log_probabilities_are_those_of_a_second_pass(translation):
    checks = {check.name: check for check in translation.attention.audit().checks}
    assert 0 <= checks["log-probabilities"].value <= 1e-4


def test_a_changed_trace_does_not_inherit_the_report(translation):
    trace = translation.attention
    assert trace.audit().passed
    layers = {**trace.layers, AttentionKind.CROSS: tuple(reversed(trace.layers[AttentionKind.CROSS]))}
    layers[AttentionKind.CROSS] = tuple(
        replace(x, output=x.output.roll(1, 0)) for x in layers[AttentionKind.CROSS]
    )
    assert not forged(trace, layers=layers).audit().passed


def test_a_head_is_audited_when_somebody_asks_and_once(translation):
    asked = []

    def auditor(trace, places):
        asked.append(places)
        return audit(trace, places)

    run = replace(translation, attention=replace(translation.attention, auditor=auditor))
    view = run.head("cross", 1, 2)
    assert asked == []
    assert view.audit is view.audit
    assert view.audit.passed
    assert {check.name for check in view.audit.checks} >= {"outputs", "arrays drawn", "labels", "text"}
    assert asked == [(("cross", 1),)]


@pytest.mark.parametrize("kind", list(AttentionKind))
@pytest.mark.parametrize("name", ["weights", "scores", "mask", "query", "key", "value", "output"])
def test_an_array_of_a_view_that_is_not_the_trace_s_fails(translation, kind, name):
    view = translation.head(kind, 1, 2)
    record = translation.attention.layer(kind, 1)
    assert audit_view(view, record).passed
    array = getattr(view, name)
    changed = array.copy()
    changed[1, 0] = ~changed[1, 0] if name == "mask" else changed[1, 0] + 0.01
    assert failed(audit_view(replace(view, **{name: changed}), record).checks) == {"arrays drawn"}
    assert not audit_view(replace(view, **{name: array.T}), record).passed or (array == array.T).all()


def test_a_view_of_another_head_or_layer_fails(translation):
    view = translation.head("cross", 1, 2)
    assert not audit_view(replace(view, head=1), translation.attention.layer("cross", 1)).passed
    assert not audit_view(view, translation.attention.layer("cross", 0)).passed


@pytest.mark.parametrize("name", ["query_tokens", "predicted_tokens", "key_tokens"])
def test_labels_that_do_not_fit_the_axes_fail(translation, name):
    view = translation.head("cross", 0, 0)
    shorter = replace(view, **{name: getattr(view, name)[:-1]})
    assert failed(audit_view(shorter, translation.attention.layer("cross", 0)).checks) == {"labels"}


def test_swapped_axes_fail_in_a_view(translation):
    view = translation.head("cross", 0, 0)
    swapped = replace(
        view,
        weights=view.weights.T,
        scores=view.scores.T,
        mask=view.mask.T,
        query_tokens=view.key_tokens,
        key_tokens=view.query_tokens,
    )
    assert not audit_view(swapped, translation.attention.layer("cross", 0)).passed


@pytest.mark.parametrize("values", [(0.1, math.nan, 0.2), (math.nan, 0.1), (0.1, math.nan), (0.1, 0.5, 0.3)])
def test_the_worst_of_several_checks_is_kept_and_not_a_number_is_worst(values):
    report = merged([Check("outputs", value, 0.4) for value in values])
    assert len(report.checks) == 1
    assert not report.passed


def test_a_report_without_checks_proves_nothing(translation):
    assert not merged([]).passed


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_a_trace_in_another_precision_can_be_audited(translation, dtype):
    trace = replace(translation.attention, dtype=dtype)
    assert audit(trace, trace.places).passed
