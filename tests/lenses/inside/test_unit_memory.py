"""The memory of a simple recurrent unit, against its definition."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from firefox_files import CONFIG, random_model, write_firefox

from lenses.inside.unit_memory import unit_memory, unit_step
from transformer import Capture, load_translator
from transformer.model.sites import Sublayer


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("firefox") / "enpt"
    return load_translator(write_firefox(folder, random_model(replace(CONFIG, n_encoder_layers=1))))


@pytest.fixture(scope="module")
def run(translator):
    return translator.translate("the old house is green", capture=Capture(residual=True), max_length=7)


@pytest.mark.parametrize("dimension", [None, 0, 5])
def test_the_parts_of_a_row_are_what_the_definition_says(translator, run, dimension):
    unit = translator.model.layer("decoder", 1).recurrence
    read = run.stream(Sublayer("decoder", 1, "recurrence")).read
    forget = torch.sigmoid(unit.forget(read)).double()
    found = unit_memory(translator.model, run, 1, dimension)
    for t in range(len(read)):
        for j in range(len(read)):
            part = (1 - forget[j]) * forget[j + 1 : t + 1].prod(0) if j <= t else torch.zeros(16)
            expected = part.mean() if dimension is None else part[dimension]
            assert found.share[t, j] == pytest.approx(float(expected), abs=1e-6)
    assert found.tokens == run.decoder_input_tokens
    assert found.share.sum(1).max() <= 1
    assert found.audit.passed


def test_the_parts_and_what_entered_make_the_state_that_the_model_had(translator, run):
    unit = translator.model.layer("decoder", 0).recurrence
    trace = run.stream(Sublayer("decoder", 0, "recurrence"))
    entering = unit.input(trace.read).double().detach().numpy()
    for dimension in range(16):
        share = unit_memory(translator.model, run, 0, dimension).share
        state = (share * entering[None, :, dimension]).sum(1)
        assert state.clip(0) == pytest.approx(trace.update[:, dimension].double().numpy(), abs=1e-5)


def test_a_step_of_the_unit_is_what_the_model_computes_from_the_token_before(translator, run):
    unit = translator.model.layer("decoder", 1).recurrence
    steps = [unit_step(translator.model, run, 1, position) for position in range(len(run.steps))]
    assert not steps[0].kept.any()
    for before, step in zip([None, *steps], steps, strict=False):
        gate = torch.sigmoid(unit.forget(torch.tensor(step.read).float())).detach().numpy()
        assert step.forget == pytest.approx(gate, abs=1e-6)
        assert step.state == pytest.approx(step.kept + step.entering, abs=1e-6)
        assert step.update == pytest.approx(step.state.clip(0), abs=1e-5)
        if before is not None:
            assert step.kept == pytest.approx(step.forget * before.state, abs=1e-6)
        assert step.audit.passed


def test_a_recording_of_another_run_is_not_verified(translator, run):
    other = translator.translate("a casa velha", capture=Capture(residual=True), max_length=7)
    place = Sublayer("decoder", 0, "recurrence")
    mixed = replace(run.stream(place), update=other.stream(place).update[: len(run.stream(place).update)])
    forged = replace(
        run, attention=replace(run.attention, residuals={**run.attention.residuals, place: mixed})
    )
    assert not unit_memory(translator.model, forged, 0).audit.passed
    assert not unit_step(translator.model, forged, 0, 1).audit.passed


def forged(run, layer: int, change) -> object:
    """The run with another recording of a unit, the sums of the stream kept true."""
    place = Sublayer("decoder", layer, "recurrence")
    residuals = dict(run.attention.residuals)
    residuals[place] = change(residuals[place])
    return replace(run.attention, residuals=residuals)


def test_the_audit_of_a_whole_run_proves_the_unit_in_every_layer(translator, run):
    assert run.attention.audit().passed
    for layer in range(translator.config.n_decoder_layers):
        for row in (0, 2, len(run.steps) - 1):

            def read(trace, row=row):  # another input makes other gates and states, also of later rows
                other = trace.read.clone()
                other[row] += 0.05
                return replace(trace, read=other, stream=other)

            def output(trace, row=row):
                other = trace.update.clone()
                other[row, 3] += 0.05
                return replace(trace, update=other)

            for change in (read, output):
                assert not forged(run, layer, change).audit().passed


@pytest.mark.parametrize("part", ["gate", "state"])
def test_an_output_made_by_another_gate_or_state_turns_the_audit_red(translator, run, part):
    """Whatever was recorded of the rest follows from it, as if the unit had computed it so."""
    place = Sublayer("decoder", 0, "recurrence")
    trace, unit = run.stream(place), translator.model.layer("decoder", 0).recurrence
    gate = torch.sigmoid(unit.forget(trace.read))
    if part == "gate":
        gate[1] = (gate[1] + 0.3).clamp(max=1)
    states, state = [], torch.full_like(gate[0], 0.2 if part == "state" else 0.0)
    for forget, entering in zip(gate, unit.input(trace.read), strict=True):
        state = forget * state + (1 - forget) * entering
        states.append(state)
    update = torch.stack(states).relu().detach()
    norm = translator.model.residual(place).norm
    output = norm(trace.stream + update).detach()
    residuals = dict(run.attention.residuals)
    residuals[place] = replace(trace, update=update, output=output)
    following = list(residuals)[list(residuals).index(place) + 1]
    residuals[following] = replace(residuals[following], stream=output, read=output)
    checks = replace(run.attention, residuals=residuals).audit().checks
    assert not all(check.passed for check in checks)
    own = replace(trace, update=update)
    assert not unit_memory(
        translator.model,
        replace(run, attention=replace(run.attention, residuals={**run.attention.residuals, place: own})),
        0,
    ).audit.passed


def test_a_layer_with_self_attention_has_no_such_memory(translator, tmp_path):
    with pytest.raises(ValueError, match="no recurrent unit"):
        unit_memory(random_model(replace(CONFIG, decoder_unit="self_attention")), None, 0)
