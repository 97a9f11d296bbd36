"""Every change of a changed run, and of what it says was changed, must turn the audit red."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from changes import EVERY, INSIDE, OTHER, TEXT, changeable
from forged import forged
from torch import Tensor

from transformer import Capture, Translator
from transformer import interventions as do
from transformer.audit import HEADS, OUTPUTS, audit
from transformer.config import Sublayer
from transformer.equations import audited_tokens
from transformer.interventions.edits import Change
from transformer.run import Translation
from transformer.stream import STREAM
from transformer.trace import AttentionTrace
from transformer.view import PLACES

LENGTH = 6
STREAMED = [name for name, change in INSIDE.items() if change.part == "stream"]
NEARLY: dict[str, do.Intervention] = {
    "ablate by mean": do.ablate("decoder", 0, [0, 2], by="mean"),
    "ablate by previous": do.ablate("encoder", 1, 0, by="uniform"),
    "ablate some rows": do.ablate("decoder", 2, 1, by="previous", rows=[3]),
    "scale": do.scale("encoder", 0, 3, 2.4, rows=[0, 2]),
    "set a row": do.set_row("cross", 2, [0, 1], 1, {0: 0.5, 3: 0.2}),
    "forbid cells": do.mask("encoder", forbid=[(0, 1), (None, 2)]),
    "temperature": do.temperature("cross", 0, None, 2.9),
    "patch embeddings": do.patch(do.embeddings("encoder"), OTHER, {1: 0, 3: 2}),
    "patch a head": do.patch(do.head_output("cross", 1, 1), OTHER, [0, 3]),
}
NEXT = [*[*INSIDE.values()][1:], do.patch(do.encoder_output(), OTHER, [1])]
OTHERWISE = dict(zip(INSIDE, NEXT, strict=True)) | NEARLY
"""Another change for each: one that would be nearly the same, or the next one."""


@pytest.fixture(scope="module")
def translator(tokenizer) -> Translator:
    return changeable(tokenizer, norm="pre")


@pytest.fixture(scope="module")
def plain(translator) -> AttentionTrace:
    return translator.translate(TEXT, max_length=LENGTH, capture=Capture(residual=True)).attention


@pytest.fixture(scope="module")
def runs(translator) -> Callable[[str], Translation]:
    """Changed runs by name, each made once."""
    made: dict[str, Translation] = {}

    def run(name: str) -> Translation:
        if name not in made:
            made[name] = translator.translate(TEXT, max_length=LENGTH, interventions=[EVERY[name]])
        return made[name]

    return run


def failed(translator: Translator, trace: AttentionTrace, *, file: bool = False) -> set[str]:
    """Names of the checks that fail, with the model at hand or as for a file."""
    basis = translator.model.config if file else translator.model
    return {
        check.name for check in audit(trace, trace.places, basis=basis).checks if not check.passed
    }


def claiming(trace: AttentionTrace, *values: do.Intervention) -> AttentionTrace:
    """The trace that says something else was changed; what was put in stays."""
    material = [change.material for change in trace.changes] or [None]
    changes = [Change(value, material[min(i, len(material) - 1)]) for i, value in enumerate(values)]
    return replace(trace, changes=tuple(changes))


@pytest.mark.parametrize("name", INSIDE)
def test_a_trace_passes_only_with_the_very_change_that_acted(runs, translator, plain, name):
    trace = runs(name).attention
    change = INSIDE[name]
    for file in (False, True):
        assert not failed(translator, trace, file=file)
    assert claiming(trace).changes == ()
    assert failed(translator, claiming(trace)), "no change"
    assert failed(translator, claiming(trace, OTHERWISE[name])), "another change"
    narrow = not isinstance(change, do.Patch) or change.part != "stream"
    unacted = replace(plain, changes=(Change(change, torch.ones(4, 8 if narrow else 32)),))
    for file in (False, True):
        assert failed(translator, unacted, file=file), "what did not act"


def mutated(trace: AttentionTrace, kind: str, layer: int, **parts: Tensor | None) -> AttentionTrace:
    records = list(trace.layers[kind])
    records[layer] = replace(records[layer], **parts)
    return forged(trace, layers={**trace.layers, kind: tuple(records)})


@pytest.mark.parametrize("name", ["ablate by zero", "ablate by mean", "scale", "patch a head"])
def test_an_output_that_was_changed_otherwise_is_caught(runs, translator, name):
    trace = runs(name).attention
    place = (INSIDE[name].kind, INSIDE[name].layer)
    record = trace.layer(*place)
    later = record.output.clone()
    later[0, 0, 0] += 0.5
    assert HEADS in failed(translator, mutated(trace, *place, output=later))
    assert OUTPUTS in failed(translator, mutated(trace, *place, own_output=record.own_output * 1.5))
    assert HEADS in failed(translator, mutated(trace, *place, own_output=None))


MAPPED = {
    name: (INSIDE[name].kind, INSIDE[name].layer)
    for name in ("ablate by uniform", "ablate by first", "set a row", "temperature", "unscaled")
} | {"hide": ("cross", 1), "forbid the past": ("decoder", 1)}


@pytest.mark.parametrize("name", MAPPED)
def test_a_changed_map_s_vectors_cannot_be_changed_afterwards(runs, translator, name):
    trace = runs(name).attention
    place = MAPPED[name]
    for part in ("value", "output"):
        moved = getattr(trace.layer(*place), part).roll(1, dims=1)
        assert OUTPUTS in failed(translator, mutated(trace, *place, **{part: moved}))


@pytest.mark.parametrize("name", STREAMED)
def test_a_stream_that_was_changed_or_cut_or_moved_afterwards_is_caught(runs, translator, name):
    trace = runs(name).attention
    for sublayer, residual in trace.residuals.items():
        for part in ("read", "output", "stream"):
            other = replace(residual, **{part: getattr(residual, part) + 0.5})
            mutation = forged(trace, residuals={**trace.residuals, sublayer: other})
            assert STREAM in failed(translator, mutation), (sublayer, part)
    assert STREAM in failed(translator, forged(trace, residuals={}))
    assert STREAM in failed(translator, forged(trace, encoder__output=None))
    memory = trace.tensors["encoder.output"] + 0.5
    assert STREAM in failed(translator, forged(trace, encoder__output=memory))
    side = "encoder" if "encoder" in trace.embeddings else "decoder"
    swapped = dict(trace.tensors)
    for part in ("query", "key", "value", "heads"):
        one, other = (f"{side}.{layer}.self_attention.{part}" for layer in (0, 1))
        swapped[one], swapped[other] = swapped[other], swapped[one]
    assert PLACES in failed(translator, replace(trace, tensors=swapped))


@pytest.mark.parametrize("name", [name for name in INSIDE if name.startswith("patch")])
def test_what_another_run_put_in_cannot_be_changed_afterwards(runs, translator, name):
    trace = runs(name).attention
    (change,) = trace.changes
    for material in (change.material + 0.5, None):
        assert failed(translator, replace(trace, changes=(Change(change.value, material),)))
    if "output" in name:
        for tensor in ("encoder.output", "encoder.output.own"):
            tensors = {**trace.tensors, tensor: trace.tensors[tensor] + 0.5}
            assert STREAM in failed(translator, replace(trace, tensors=tensors))


@pytest.mark.parametrize(
    ("options", "change"),
    [
        *(
            ({"positions": name}, do.no_positions("decoder"))
            for name in ("rotary", "alibi", "shaw")
        ),
        ({"norm": "post"}, do.drop_norm("encoder", 1, "self_attention")),
    ],
)
def test_what_was_left_out_is_proved_for_every_encoding_and_norm(tokenizer, options, change):
    model = changeable(tokenizer, **options)
    trace = model.translate(TEXT, max_length=4, interventions=[change]).attention
    own = model.translate(TEXT, max_length=4, capture=Capture(residual=True)).attention
    assert not failed(model, trace)
    assert STREAM in failed(model, claiming(own, change))


def test_lifted_cells_are_part_of_the_trace_and_of_its_proof(translator):
    lifted = do.mask("decoder", allow=[(0, 2), (1, 3)])
    run = translator.force(TEXT, tuple(range(40, 46)), interventions=[lifted])
    mask = run.mask("decoder", 2, 0)
    assert np.argwhere(mask & ~np.tri(6, dtype=bool)).tolist() == [[0, 2], [1, 3]]
    assert mask[np.tri(6, dtype=bool)].all()
    assert not failed(translator, run.attention)
    for allow in ([(0, 2)], [(0, 3), (1, 3)]):
        other = claiming(run.attention, do.mask("decoder", allow=allow))
        assert OUTPUTS in failed(translator, other)


def test_the_config_alone_is_enough_for_the_checks_of_a_file(runs, translator):
    trace = runs("drop a sub-layer").attention
    sublayer = Sublayer("decoder", 1, "self_attention")
    residual = trace.residuals[sublayer]
    others: list[dict[str, Any]] = [{"output": residual.own_output}, {"own_output": None}]
    for change in (*others, {"stream": residual.stream + residual.own_output}):
        mutation = forged(
            trace, residuals={**trace.residuals, sublayer: replace(residual, **change)}
        )
        assert STREAM in failed(translator, mutation, file=True)


@pytest.mark.parametrize(
    ("changes", "source", "written", "right"),
    [
        (
            [do.choose(0, "a"), do.forbid("z"), do.prefix([1]), do.drop_source(0)],
            ["s"],
            [("a", 1)],
            True,
        ),
        ([do.choose(1, "b")], ["s"], [("a", 1), ("c", 3)], False),
        ([do.choose(1, 2)], ["s"], [("a", 1)], False),
        ([do.forbid("c")], ["s"], [("a", 1), ("c", 3)], False),
        ([do.forbid(3, 0)], ["s"], [("a", 1), ("c", 3)], True),
        ([do.prefix(["a", "b"])], ["s"], [("a", 1), ("c", 3)], False),
        ([do.edit_source(1, "t")], ["s", "u"], [("a", 1)], False),
        # behind a token that was left out
        ([do.drop_source(0), do.edit_source(2, "t")], ["s", "t"], [("a", 1)], True),
        ([do.drop_source(0), do.edit_source(2, "t")], ["t", "s"], [("a", 1)], False),
    ],
)
def test_tokens_must_be_those_that_the_changes_ask_for(changes, source, written, right):
    assert audited_tokens(changes, source, written) == right
