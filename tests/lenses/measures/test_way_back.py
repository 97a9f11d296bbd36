"""The way back from a logit: every node's edges sum to it, and each part is what a forward pass carries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from closed_form import CASES
from random_models import random_translator

from lenses.again.carried import read_by_keys
from lenses.again.plain import carried_on, exactly, output_columns
from lenses.again.way_back import audit_hidden, audit_way_back
from lenses.measures.direct import direct
from lenses.measures.effect import Cut, Effects
from lenses.measures.stream import TOKEN as TOKEN_WRITER
from lenses.measures.stream import UnmeasuredError, Writer
from lenses.measures.way_back import WayBack, WayGraph, way_back
from transformer import Capture, interventions
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.trace.view import Array

STEP, TOKEN = 2, 9
RESIDUAL = Capture(residual=True)


@pytest.fixture(scope="module", params=["pre sinusoidal", "post learned", "pre t5", "post rotary"])
def run(request: pytest.FixtureRequest, translator: Translator) -> tuple[Translator, Translation]:
    model = random_translator(translator.tokenizer, *request.param.split())
    return model, model.force("one two three nine", "two one four", capture=RESIDUAL)


@pytest.fixture(scope="module", params=[None, 6])
def found(request: pytest.FixtureRequest, run) -> tuple[WayBack, int | None]:
    return way_back(run[0].model, run[1], STEP, TOKEN, request.param), request.param


def test_every_part_is_what_is_carried_forwards(run, found):
    back, against = found
    report = audit_way_back(run[0].model, run[1], STEP, (TOKEN, against), back, None)
    assert report.passed, report
    assert back.audit.passed
    wrong = replace(back, words=np.roll(back.words, 1, -1))
    assert not audit_way_back(run[0].model, run[1], STEP, (TOKEN, against), wrong, None).passed


def test_the_check_says_by_what_share_of_the_largest_part_a_position_is_missed(
    run, monkeypatch: pytest.MonkeyPatch
):
    for more in (0.01, 100.0):  # nats that one writer has too many

        def other(model, translation, side, *given, more=more):
            made = direct(model, translation, side, *given)
            return replace(made, values=[made.values[0] + more * (side == "encoder"), *made.values[1:]])

        monkeypatch.setattr("lenses.measures.way_back.direct", other)
        wrong = way_back(run[0].model, run[1], STEP, TOKEN)
        share = more / max(1.0, float(np.abs(wrong.encoder).max()))
        assert wrong.audit.checks[-1].value == pytest.approx(share, rel=1e-3)
        assert not wrong.audit.passed


@pytest.mark.parametrize("most", [1, 3, 200])
def test_the_edges_of_every_node_sum_to_it(found, most: int):
    picture, back = WayGraph(found[0], most), found[0]
    largest = max(abs(node.value) for node in picture.nodes)
    for at, node in enumerate(picture.nodes):
        into = [edge.value for edge in picture.edges if edge.end == at]
        out = [edge.value for edge in picture.edges if edge.start == at]
        if node.column:
            assert sum(into) == pytest.approx(node.value, abs=1e-5 * largest)
        head = node.rest == "heads" or (node.writer is not None and node.writer.head is not None)
        source = node.column == 2 and not node.prefix and not node.rest
        if node.column == 0 or (head or source):
            assert sum(out) == pytest.approx(node.value, abs=1e-5 * largest)
        else:
            assert not out
    assert picture.nodes[0].value == back.logit.total
    for column in range(1, 5):
        alone = [each for each in picture.nodes if each.column == column and not each.rest]
        assert len(alone) <= most


def test_a_place_has_the_sum_of_what_was_read_at_its_position(found):
    back = found[0]
    picture = WayGraph(back, 2)
    shown = [node.position for node in picture.nodes if node.column == 2 and not (node.prefix or node.rest)]
    for node in picture.nodes:
        if node.rest or node.position is None:
            continue
        if node.column == 2:
            own = back.prefix if node.prefix else back.source
            assert node.value == pytest.approx(float(own[:, :, node.position].sum()), rel=1e-5)
        if node.column == 4:
            assert node.value == pytest.approx(float(back.words[:, :, shown, node.position].sum()), rel=1e-5)


def test_a_way_is_what_one_head_makes_of_what_another_read(run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lenses.measures.way_back._TRIED", 1000)
    model, translation = run[0].model, run[1]
    back = way_back(model, translation, STEP, TOKEN)
    sizes = [abs(way.value) for way in back.ways]
    assert sizes == sorted(sizes, reverse=True)
    way = next(each for each in back.ways if each.writer is not None and each.writer.head is not None)
    (layer, head), word = (
        way.writer[1:],
        read_by_keys(translation, AttentionKind.ENCODER, way.writer.layer)[way.word],
    )
    part = _wrote(run, AttentionKind.ENCODER, layer, head, (way.position, way.word), word)
    part = _wrote(run, AttentionKind.CROSS, *way.head[1:], (STEP, way.position), part)
    asked = exactly(model.projection[0][TOKEN])
    assert float(part @ asked) == pytest.approx(way.value, rel=1e-4)


def _wrote(run, kind: AttentionKind, layer: int, head: int, cell: tuple[int, int], read: Array) -> Array:
    model, translation = run[0].model, run[1]
    attention, site = model.attention(kind, layer), model.config.sites[kind]
    width = attention.v_proj.out_features // attention.n_heads
    value = exactly(attention.v_proj.weight)[head * width : (head + 1) * width] @ read
    wrote = translation.weights(kind, layer, head)[cell] * (output_columns(model, kind, layer, head) @ value)
    return carried_on(model, translation, site.sublayer(layer), wrote, cell[0])


def test_a_model_set_by_hand_answers_through_the_one_head_that_writes(solved: Translator):
    case = CASES[solved.name]
    text = solved.translate(case.sentence, capture=RESIDUAL)
    for step, key in enumerate(case.keys("cross", 0)):
        back = way_back(solved.model, text, step, text.steps[step].token_id)
        largest = back.ways[0]
        assert (largest.head, largest.position) == (Writer("cross_attention", 0, 0), key)
        assert (largest.writer, largest.word) == (Writer(TOKEN_WRITER), key)
        assert np.unravel_index(int(np.argmax(back.source)), back.source.shape) == (0, 0, key)


def test_what_has_no_way_back_is_refused(run):
    model, _ = run
    changed = [interventions.ablate("cross", 0, 0)]
    forced = model.force("one two", "two", capture=RESIDUAL, interventions=changed)
    with pytest.raises(UnmeasuredError):
        way_back(model.model, forced, 0, TOKEN)


def test_effects_of_hidden_positions_are_runs_of_their_own(run):
    model, translation = run
    cuts = [(Cut(AttentionKind.CROSS, (key,)),) for key in range(len(translation.source_tokens))]
    effects = np.asarray(Effects(model, translation).of(cuts)[:, STEP], np.float32)
    assert audit_hidden(model, translation, STEP, effects, len(effects)).passed
    assert not audit_hidden(model, translation, STEP, np.roll(effects, 1), len(effects)).passed
