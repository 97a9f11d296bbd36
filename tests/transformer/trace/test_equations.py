"""Every change of a trace, and of what it says was changed, must turn the audit red."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from changes import EVERY, INSIDE, OTHER, TEXT, changeable
from forged import forged

from transformer import Capture
from transformer import interventions as do
from transformer.audit import HEADS, OUTPUTS, audit
from transformer.config import Sublayer, TransformerConfig
from transformer.equations import audited_tokens
from transformer.interventions.edits import Change
from transformer.run import Translation
from transformer.stream import STREAM
from transformer.trace import AttentionTrace
from transformer.view import PLACES

LENGTH = 6


@pytest.fixture(scope="module")
def translator(tokenizer):
    return changeable(tokenizer, norm="pre")


@pytest.fixture(scope="module")
def runs(translator) -> Callable[[str], Translation]:
    """Changed runs by name, each made once."""
    made: dict[str, Translation] = {}

    def run(name: str) -> Translation:
        if name not in made:
            made[name] = translator.translate(TEXT, max_length=LENGTH, interventions=[EVERY[name]])
        return made[name]

    return run


def failed(translator, trace: AttentionTrace, *, file: bool = False) -> set[str]:
    """Names of the checks that fail, with the model at hand or as for a file."""
    basis = translator.model.config if file else translator.model
    return {check.name for check in audit(trace, trace.places, basis=basis).checks if not check.passed}


def said(trace: AttentionTrace, *values: do.Intervention) -> AttentionTrace:
    """The trace that says something else was changed; what was put in stays."""
    material = [change.material for change in trace.changes] or [None]
    changes = [Change(value, material[min(i, len(material) - 1)]) for i, value in enumerate(values)]
    return replace(trace, changes=tuple(changes))


@pytest.mark.parametrize("name", INSIDE)
def test_an_honest_trace_passes_with_the_model_and_as_a_file(runs, translator, name):
    trace = runs(name).attention
    assert not failed(translator, trace)
    assert not failed(translator, trace, file=True)


@pytest.mark.parametrize("name", INSIDE)
def test_a_change_that_the_trace_does_not_say_is_caught(runs, translator, name):
    trace = said(runs(name).attention)
    assert trace.interventions == ()
    assert failed(translator, trace)


OTHERWISE = {
    "ablate by zero": do.ablate("cross", 1, 3),
    "ablate by mean": do.ablate("decoder", 0, [0, 2], by="mean"),
    "ablate by uniform": do.ablate("decoder", 1, None, by="first"),
    "ablate by previous": do.ablate("encoder", 1, 0, by="uniform"),
    "ablate by first": do.ablate("cross", 0, [1], by="first"),
    "ablate some rows": do.ablate("decoder", 2, 1, by="previous", rows=[3]),
    "scale": do.scale("encoder", 0, 3, 2.4, rows=[0, 2]),
    "set a row": do.set_row("cross", 2, [0, 1], 1, {0: 0.5, 3: 0.2}),
    "set a row of the decoder": do.set_row("decoder", 0, 1, 2, {0: 0.8}),
    "hide": do.hide(2),
    "forbid cells": do.mask("encoder", forbid=[(0, 1), (None, 2)]),
    "forbid the past": do.mask("decoder", forbid="past", layer=2),
    "temperature": do.temperature("cross", 0, None, 2.9),
    "unscaled": do.unscaled("encoder", 0, 2),
    "no positions in the encoder": do.no_positions("decoder"),
    "no positions in the decoder": do.no_positions("encoder"),
    "drop a sub-layer": do.drop_sublayer("decoder", 1, "cross_attention"),
    "drop a network": do.drop_sublayer("encoder", 1, "feed_forward"),
    "drop a LayerNorm": do.drop_norm("decoder", 1, "cross_attention"),
    "patch embeddings": do.patch(do.embeddings("encoder"), OTHER, {1: 0, 3: 2}),
    "patch a stream": do.patch(do.stream("decoder", 0, "cross_attention"), OTHER, [1, 2]),
    "patch a head": do.patch(do.head_output("cross", 1, 1), OTHER, [0, 3]),
    "patch the encoder's output": do.patch(do.encoder_output(), OTHER, [1]),
}


@pytest.mark.parametrize("name", INSIDE)
def test_another_change_than_the_one_that_acted_is_caught(runs, translator, name):
    assert failed(translator, said(runs(name).attention, OTHERWISE[name]))


@pytest.mark.parametrize("name", INSIDE)
def test_what_did_not_act_is_caught_if_the_trace_says_it(translator, name):
    plain = translator.translate(TEXT, max_length=LENGTH, capture=Capture(residual=True)).attention
    narrow = not isinstance(INSIDE[name], do.Patch) or INSIDE[name].part != "stream"
    trace = replace(plain, changes=(Change(INSIDE[name], torch.ones(4, 8 if narrow else 32)),))
    assert failed(translator, trace)
    assert failed(translator, trace, file=True)


def layer_of(name: str) -> tuple[str, int]:
    return INSIDE[name].kind, INSIDE[name].layer


def mutated(trace: AttentionTrace, place: tuple[str, int], **parts: torch.Tensor | None) -> AttentionTrace:
    kind, layer = place
    records = list(trace.layers[kind])
    records[layer] = replace(records[layer], **parts)
    return forged(trace, layers={**trace.layers, kind: tuple(records)})


@pytest.mark.parametrize("name", ["ablate by zero", "ablate by mean", "scale", "patch a head"])
def test_an_output_that_was_changed_otherwise_is_caught(runs, translator, name):
    trace, place = runs(name).attention, layer_of(name)
    record = trace.layer(*place)
    later = record.output.clone()
    later[0, 0, 0] += 0.5
    assert HEADS in failed(translator, mutated(trace, place, output=later))
    before = record.own_output * 1.5
    assert OUTPUTS in failed(translator, mutated(trace, place, own_output=before))
    assert HEADS in failed(translator, mutated(trace, place, own_output=None))


@pytest.mark.parametrize(
    "name",
    [
        "ablate by uniform",
        "ablate by first",
        "set a row",
        "hide",
        "forbid the past",
        "temperature",
        "unscaled",
    ],
)
def test_a_changed_map_s_vectors_cannot_be_changed_afterwards(runs, translator, name):
    kind, layer = (
        ("cross", 1) if name == "hide" else ("decoder", 1) if name == "forbid the past" else layer_of(name)
    )
    trace = runs(name).attention
    record = trace.layer(kind, layer)
    for part in ("value", "output"):
        moved = getattr(record, part).roll(1, dims=1)
        assert OUTPUTS in failed(translator, mutated(trace, (kind, layer), **{part: moved}))


STREAMED = [name for name, change in INSIDE.items() if change.part == "stream"]


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("part", ["read", "output", "stream"])
def test_a_stream_that_was_changed_afterwards_is_caught(runs, translator, name, part):
    trace = runs(name).attention
    for sublayer, residual in trace.residuals.items():
        other = replace(residual, **{part: getattr(residual, part) + 0.5})
        mutation = forged(trace, residuals={**trace.residuals, sublayer: other})
        assert STREAM in failed(translator, mutation), sublayer


@pytest.mark.parametrize("name", STREAMED)
def test_a_stream_that_is_missing_proves_nothing(runs, translator, name):
    trace = runs(name).attention
    assert STREAM in failed(translator, forged(trace, residuals={}))
    assert STREAM in failed(translator, forged(trace, encoder__output=None))


def test_what_another_run_held_cannot_be_changed_afterwards(runs, translator):
    for name in ("patch embeddings", "patch a stream", "patch a head", "patch the encoder's output"):
        trace = runs(name).attention
        change = trace.changes[0]
        assert failed(translator, replace(trace, changes=(Change(change.value, change.material + 0.5),))), (
            name
        )
        assert failed(translator, replace(trace, changes=(Change(change.value, None),))), name


def test_the_encoder_s_output_cannot_be_changed_afterwards(runs, translator):
    trace = runs("patch the encoder's output").attention
    for name in ("encoder.output", "encoder.output.own"):
        changed = replace(trace, tensors={**trace.tensors, name: trace.tensors[name] + 0.5})
        assert STREAM in failed(translator, changed)


def test_positions_that_were_left_out_cannot_come_back(runs, translator):
    trace = runs("no positions in the encoder").attention
    embedding = trace.embeddings["encoder"]
    back = replace(embedding, positions=torch.zeros_like(embedding.tokens))
    assert STREAM in failed(translator, forged(trace, embeddings={**trace.embeddings, "encoder": back}))


@pytest.mark.parametrize("positions", ["rotary", "alibi", "shaw"])
def test_positions_inside_attention_are_left_out_and_proved(tokenizer, positions):
    translator = changeable(tokenizer, positions=positions)
    bare = translator.translate(TEXT, max_length=4, interventions=[do.no_positions("decoder")]).attention
    assert not failed(translator, bare)
    plain = translator.translate(TEXT, max_length=4, capture=Capture(residual=True)).attention
    assert STREAM in failed(translator, said(plain, do.no_positions("decoder")))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_dropped_layer_norm_is_told_from_one_that_ran(tokenizer, norm):
    translator = changeable(tokenizer, norm=norm)
    dropped = do.drop_norm("encoder", 1, "self_attention")
    trace = translator.translate(TEXT, max_length=4, interventions=[dropped]).attention
    assert not failed(translator, trace)
    assert STREAM in failed(translator, said(trace, do.drop_norm("encoder", 0, "self_attention")))
    assert STREAM in failed(translator, said(trace, do.drop_norm("encoder", 0, "self_attention")), file=True)


def test_lifted_cells_are_part_of_the_trace_and_of_its_proof(translator):
    lifted = do.mask("decoder", allow=[(0, 2), (1, 3)])
    run = translator.force(TEXT, tuple(range(40, 46)), interventions=[lifted])
    trace = run.attention
    mask = trace.mask("decoder", 2, 0)
    assert np.argwhere(mask & ~np.tri(6, dtype=bool)).tolist() == [[0, 2], [1, 3]]
    assert mask[np.tri(6, dtype=bool)].all()
    assert run.head("decoder", 2, 0).mask[0].tolist() == [True, False, True, False, False, False]
    assert not failed(translator, trace)
    for other in (do.mask("decoder", allow=[(0, 2)]), do.mask("decoder", allow=[(0, 3), (1, 3)])):
        assert OUTPUTS in failed(translator, said(trace, other))


@pytest.mark.parametrize(
    ("change", "source", "written"),
    [
        (do.choose(1, "b"), ["s"], [("a", 1), ("c", 3)]),
        (do.choose(1, 2), ["s"], [("a", 1)]),
        (do.forbid("c"), ["s"], [("a", 1), ("c", 3)]),
        (do.forbid(3, 1), ["s"], [("a", 1), ("c", 3)]),
        (do.prefix(["a", "b"]), ["s"], [("a", 1), ("c", 3)]),
        (do.edit_source(1, "t"), ["s", "u"], [("a", 1)]),
    ],
)
def test_tokens_that_are_not_those_asked_for_are_caught(change, source, written):
    assert not audited_tokens([change], source, written)
    plain = audited_tokens(
        [do.choose(0, "a"), do.forbid("z"), do.prefix([1]), do.drop_source(0)], source, written
    )
    assert plain


def test_an_edit_is_found_behind_a_token_that_was_left_out():
    changes = [do.drop_source(0), do.edit_source(2, "t")]
    assert audited_tokens(changes, ["s", "t"], [("a", 1)])
    assert not audited_tokens(changes, ["t", "s"], [("a", 1)])


def test_the_config_alone_is_enough_for_the_checks_of_a_file(runs, translator):
    assert isinstance(translator.model.config, TransformerConfig)
    trace = runs("drop a sub-layer").attention
    sublayer = Sublayer("decoder", 1, "self_attention")
    residual = trace.residuals[sublayer]
    for other in (
        replace(residual, output=residual.own_output),
        replace(residual, own_output=None),
        replace(residual, stream=residual.stream + residual.own_output),
    ):
        mutation = forged(trace, residuals={**trace.residuals, sublayer: other})
        assert STREAM in failed(translator, mutation, file=True)


@pytest.mark.parametrize("name", STREAMED)
def test_two_layers_of_a_changed_run_cannot_change_places(runs, translator, name):
    trace = runs(name).attention
    one, other = ("encoder.0.self_attention", "encoder.1.self_attention")
    if "encoder" not in trace.embeddings:
        one, other = (each.replace("encoder", "decoder") for each in (one, other))
    swapped = dict(trace.tensors)
    for part in ("query", "key", "value", "heads"):
        swapped[f"{one}.{part}"], swapped[f"{other}.{part}"] = (
            swapped[f"{other}.{part}"],
            swapped[f"{one}.{part}"],
        )
    assert not failed(translator, trace)
    assert PLACES in failed(translator, replace(trace, tensors=swapped))
