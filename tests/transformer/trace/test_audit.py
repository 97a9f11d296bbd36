"""What a run recorded, and its audit: everything that is exchanged, changed or missing turns it
red."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from forged import forged
from published import published
from random_models import random_language_model, random_model, random_recurrent
from torch import Tensor

from transformer import AttentionKind, Capture, Sampling, load_trace, load_translator, save_trace
from transformer.audit import (
    LABELS_UNMADE,
    POSITIONS_UNMADE,
    audit,
    audit_layer,
    audit_view,
    merged,
)
from transformer.config import Place
from transformer.encodings import REGISTRY
from transformer.run import Translation
from transformer.trace import AttentionTrace, EmbeddingTrace, LayerTrace
from transformer.translator import Translator, retrace
from transformer.view import PLACES, Check, difference, difference_as_given

TEXT, OTHER = "one two three four five", "five four three two one"
KINDS = list(AttentionKind)
RECORDS = ("query", "key", "value", "output")
WAYS: list[dict[str, Any]] = [{}, {"beam_size": 4}, {"sample": Sampling(seed=5)}]


def failed(*checks: Check) -> set[str]:
    return {check.name for check in checks if not check.passed}


def failures(run: Translation | AttentionTrace) -> set[str]:
    return failed(*run.audit().checks)


@pytest.fixture(scope="module")
def run(translator) -> Translation:
    return translator.translate(TEXT, max_length=6, capture=Capture(residual=True))


@pytest.fixture(scope="module")
def trace(translator) -> AttentionTrace:
    return translator.translate(TEXT, max_length=6).attention


# --- what is recorded ----------------------------------------------------------------------------


@pytest.mark.parametrize("options", WAYS)
def test_capture_changes_no_number_and_a_replay_records_the_same(translator, options):
    on, off = (
        translator.translate(TEXT, max_length=9, capture=c, **options) for c in (True, False)
    )
    assert (on.log_probs, on.steps, off.attention) == (off.log_probs, off.steps, None)
    assert on.attention.audit().placed
    replayed = retrace(translator, on)
    assert not wrong(on) | wrong(replayed)
    for place in on.attention.places:
        theirs = replayed.attention.weights(*place)
        np.testing.assert_allclose(on.attention.weights(*place), theirs, atol=1e-5)


def test_recorded_bytes_are_linear_in_the_length(translator):
    def bytes_of(words: int) -> int:
        return translator.force(
            " ".join(["one"] * words), " ".join(["eins"] * words)
        ).attention.nbytes

    assert [bytes_of(n) for n in (31, 127)] == pytest.approx(
        [4 * 32 * 4 * 8 * n for n in (32, 128)], rel=1e-3
    )


# --- a layer -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def layer(trace) -> LayerTrace:
    """Encoder self-attention: square, so that a transposed map fits."""
    return trace.layer("encoder", 1)


class Forged(LayerTrace):
    """A trace that derives weights other than those the model used."""

    forge = staticmethod(lambda weights: weights)

    def map(self, heads, window=None):
        own = super().map(heads, window)
        return own._replace(weights=self.forge(own.weights.clone()))


def with_weights(layer: LayerTrace, forge: Callable[[Tensor], Tensor]) -> LayerTrace:
    other = Forged(**{name: getattr(layer, name) for name in layer.__dataclass_fields__})
    object.__setattr__(other, "forge", forge)
    return other


def one_more(weights: Tensor) -> Tensor:
    weights[0, 2, 3] += 0.01
    return weights


MAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda weights: weights.transpose(-1, -2),
    "rows shifted": lambda weights: weights.roll(1, dims=-2),
    "columns shifted": lambda weights: weights.roll(1, dims=-1),
    "heads shifted": lambda weights: weights.roll(1, dims=0),
    "one changed": one_more,
    "not a number": lambda weights: weights * torch.nan,
}


@pytest.mark.parametrize("forgery", MAPS)
def test_a_forged_map_fails(layer, forgery):
    assert "weights" in failed(*audit_layer(with_weights(layer, MAPS[forgery])))


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_was_shifted_changed_or_is_no_number_fails(layer, name):
    record = getattr(layer, name)
    none = record.clone()
    none[1, 2, 3] = torch.nan
    for other in (record.roll(1, dims=1), record * 1.5, none):
        assert "outputs" in failed(*audit_layer(replace(layer, **{name: other})))


def test_sums_and_masks_are_part_of_the_proof(trace, layer):
    decoder = trace.layer("decoder", 0)
    padding = torch.ones(layer.shape[2], dtype=torch.bool)
    padding[-1] = False
    assert "row sums" in failed(*audit_layer(with_weights(layer, lambda weights: weights * 1.001)))
    assert failed(*audit_layer(with_weights(decoder, lambda weights: weights + 1e-9))) == {
        "masked weights"
    }
    for record, other in (
        (decoder, {"causal": False}),
        (layer, {"causal": True}),
        (layer, {"key_padding": padding}),
    ):
        assert "outputs" in failed(*audit_layer(replace(record, **other)))
    width = (1, 3, 4)
    nothing = torch.zeros(3, dtype=torch.bool)
    query, key, value = torch.randn(3, *width, generator=torch.Generator().manual_seed(0))
    honest = LayerTrace("cross", 0, query, key, value, torch.zeros(width), nothing, causal=False)
    assert not failed(*audit_layer(honest)), "a row that sees no key is zeros"
    assert failed(*audit_layer(replace(honest, output=value))) == {"outputs"}
    assert "row sums" in failed(*audit_layer(with_weights(honest, lambda weights: weights + 1 / 3)))


def test_a_stored_row_of_a_hook_is_checked_against_the_output(translator):
    hooks = {
        "decoder.0.cross_attention.weights": lambda v, first: torch.full_like(v, 1 / v.shape[-1])
    }
    hooked = translator.translate(TEXT, max_length=3, hooks=hooks).attention.layer("cross", 0)
    assert not failed(*audit_layer(hooked))
    for used in (None, hooked.used_weights.roll(1, -1) * 2):
        assert "outputs" in failed(*audit_layer(replace(hooked, used_weights=used)))


# --- a run ---------------------------------------------------------------------------------------


def test_an_honest_trace_passes_every_check_in_any_precision(trace):
    report = trace.audit()
    worst = {check.name: check.value for check in report.checks}
    names = {
        "row sums",
        "masked weights",
        "weights",
        "outputs",
        "embeddings",
        "tokens",
        "positions",
    }
    assert (report.passed, {*worst}) == (True, names | {"log-probabilities", "places", "pieces"})
    assert worst["row sums"] < 1e-5
    assert worst["outputs"] < 1e-4
    assert 0 <= worst["log-probabilities"] <= 1e-4
    assert audit(replace(trace, dtype=torch.float16), trace.places).passed


def test_other_log_probabilities_and_reports_of_nothing_fail(trace):
    assert audit(trace, (), (-1.0, -2.0), (-1.0, -2.0)).passed
    for replayed in ((-1.0, -2.001), (-1.0,), (-1.0, math.nan), (-2.0, -1.0)):
        assert not audit(trace, (), (-1.0, -2.0), replayed).passed
    for values in ((0.1, math.nan, 0.2), (math.nan, 0.1), (0.1, math.nan), (0.1, 0.5, 0.3)):
        report = merged([Check("outputs", value, 0.4) for value in values])
        assert (len(report.checks), report.passed) == (1, False)
    assert not merged([]).passed
    assert (
        difference(None, None, 1),
        difference([1, 4], [1, 2], 1),
        difference([0, 2], [0, 1], 4),
    ) == (
        0,
        1,
        0.25,
    )
    assert (
        difference(None, [0], 1)
        == difference([0], None, 1)
        == difference([1], [1, 1], 1)
        == math.inf
    )


@pytest.mark.parametrize(
    ("recorded", "expected", "apart"),
    [
        (None, None, 0),
        (None, [0], math.inf),
        ([1, math.nan], [1, math.nan], 0),
        ([1, math.nan], [2, math.nan], 0.5),
        ([1, math.nan], [1, 1], math.inf),
        ([1, 1], [1, math.nan], math.inf),
        ([1, 1, 1], [1, 1], math.inf),
        ([[1, 1]], [1, 1], math.inf),
    ],
)
def test_numbers_as_given_may_be_none_in_the_same_places(recorded, expected, apart):
    assert difference_as_given(recorded, expected, 1) == apart


def test_a_head_is_audited_when_somebody_asks_and_once(run):
    places = []

    def auditor(trace: AttentionTrace, of: tuple[Place, ...]) -> Any:
        places.append(of)
        return audit(trace, of)

    view = replace(run, attention=replace(run.attention, auditor=auditor)).head("cross", 1, 2)
    assert places == []
    assert view.audit is view.audit
    assert view.audit.passed
    assert {check.name for check in view.audit.checks} >= {
        "outputs",
        "arrays drawn",
        "labels",
        "text",
    }
    assert places == [(("cross", 1),)]


@pytest.mark.parametrize("name", ["weights", "scores", "mask", "query", "key", "value", "output"])
def test_an_array_of_a_view_that_is_not_the_trace_s_fails(run, name):
    view = run.head("decoder", 1, 2)
    record = run.attention.layer("decoder", 1)
    assert audit_view(view, record).passed
    array = getattr(view, name)
    other = array.copy()
    other[1, 0] = ~other[1, 0] if name == "mask" else other[1, 0] + 0.01
    assert failed(*audit_view(replace(view, **{name: other}), record).checks) == {"arrays drawn"}
    assert not audit_view(replace(view, **{name: array.T}), record).passed


def test_a_view_of_another_place_or_with_other_axes_fails(run):
    view = run.head("cross", 1, 2)
    record = run.attention.layer("cross", 1)
    turned: dict[str, Any] = {name: getattr(view, name).T for name in ("weights", "scores", "mask")}
    turned |= {"query_tokens": view.key_tokens, "key_tokens": view.query_tokens}
    for other in (replace(view, head=1), replace(view, **turned)):
        assert not audit_view(other, record).passed
    assert not audit_view(view, run.attention.layer("cross", 0)).passed
    for name in ("query_tokens", "predicted_tokens", "key_tokens"):
        shorter = replace(view, **{name: getattr(view, name)[:-1]})
        assert failed(*audit_view(shorter, record).checks) == {"labels"}


def test_a_copy_with_other_numbers_tokens_or_place_is_checked_anew(run):
    view = run.head("cross", 1, 2)
    assert view.audit.passed
    other = run.head("cross", 1, 1)
    copies = {
        "weights": other.weights,
        "mask": ~view.mask,
        "key_tokens": view.key_tokens[::-1],
        "head": 1,
        "layer": 0,
    }
    for name, value in copies.items():
        assert not replace(view, **{name: value}).audit.passed, name
    assert replace(view, model="another").audit.passed


@pytest.mark.parametrize("side", ["encoder", "decoder", "written"])
def test_a_piece_renamed_in_trace_and_run_alike_is_compared_with_its_id(run, side):
    tokens = dict(run.attention.tokens)
    pieces = ("▁forged", *tokens[side].pieces[1:])
    tokens[side] = replace(tokens[side], pieces=pieces)
    fields = {
        "encoder": "source_tokens",
        "decoder": "decoder_input_tokens",
        "written": "target_tokens",
    }
    renamed = replace(
        run, attention=replace(run.attention, tokens=tokens), **{fields[side]: pieces}
    )
    assert failed(*renamed.audit().checks) == {"pieces"}


# --- places --------------------------------------------------------------------------------------


def put(trace: AttentionTrace, place: Place, **records: Tensor) -> AttentionTrace:
    """The trace with other records at a place."""
    kind, layer = place
    layers = list(trace.layers[kind])
    layers[layer] = replace(layers[layer], **records)
    return forged(trace, layers={**trace.layers, kind: tuple(layers)})


def moved(record: LayerTrace, dimension: int, *names: str) -> dict[str, Tensor]:
    return {name: getattr(record, name).roll(1, dims=dimension) for name in names}


@pytest.mark.parametrize("kind", KINDS)
def test_heads_layers_and_steps_in_each_other_s_place_fail(trace, kind):
    layers = trace.layers[kind]
    record = trace.layer(kind, 1)
    assert failures(put(trace, (kind, 1), **moved(record, 0, *RECORDS))) == {PLACES}
    swapped = forged(trace, layers={**trace.layers, kind: (layers[1], layers[0], *layers[2:])})
    assert failures(swapped) == {PLACES}
    if kind != AttentionKind.DECODER:
        other = trace.layer(kind, 0)
        assert PLACES in failures(
            put(trace, (kind, 1), **{name: getattr(other, name) for name in RECORDS})
        )
        assert failures(put(trace, (kind, 1), **moved(record, 1, "query", "output"))) == {PLACES}


def test_records_of_another_sentence_and_of_layers_the_other_way_round_fail(translator, trace):
    other = translator.translate(OTHER, max_length=6).attention.layer("encoder", 0)
    theirs = {name: getattr(other, name) for name in RECORDS}
    assert failures(put(trace, (AttentionKind.ENCODER, 0), **theirs)) == {PLACES}
    crossed = trace.layers[AttentionKind.CROSS]
    turned = tuple(replace(each, output=each.output.roll(1, 0)) for each in reversed(crossed))
    assert not forged(trace, layers={**trace.layers, AttentionKind.CROSS: turned}).audit().passed


# --- labels, texts and positions -----------------------------------------------------------------

NETWORKS = [*REGISTRY, "post", "post, learned", "recurrent", "language", "marian", "bfloat16"]


def run_of(name: str, translator: Translator) -> Translation:
    """A run of each network and encoding, with different tokens in each place."""
    vocabulary, tokenizer = translator.config.vocab_size, translator.tokenizer
    if name == "language":
        return Translator(random_language_model(vocab_size=vocabulary), tokenizer).force(TEXT)
    if name == "marian":
        return load_translator(published("marian")).translate(
            "the old house is small", max_length=6
        )
    if name == "recurrent":
        network: Any = random_recurrent("dot", vocab_size=vocabulary)
    else:
        norm = "post" if "post" in name else "pre"
        positions = name.removeprefix("post, ")
        positions = positions if positions in REGISTRY else "sinusoidal"
        network = random_model(vocab_size=vocabulary, positions=positions, norm=norm)
    network = network.to(torch.bfloat16) if name == "bfloat16" else network
    return Translator(network, tokenizer).force(TEXT, "two one four three")


@pytest.fixture(scope="module", params=NETWORKS)
def networked(request: pytest.FixtureRequest, translator: Translator) -> Translation:
    return run_of(request.param, translator)


@pytest.fixture(scope="module")
def english(translator: Translator) -> Translation:
    return run_of("sinusoidal", translator)


def wrong(run: Translation) -> set[str]:
    """Names of checks that fail, of the run and of a head, which fail together."""
    reports = run.audit(), run.head(next(reversed(run.config.sites)), 0, 0).audit
    assert {report.passed for report in reports} in ({True}, {False})
    return failed(*(check for report in reports for check in report.checks))


def exchanged(tokens: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*tokens[:1], tokens[2], tokens[1], *tokens[3:])


def with_embedding(
    run: Translation, change: Callable[[EmbeddingTrace], EmbeddingTrace]
) -> Translation:
    trace = run.attention
    side = next(iter(run.attention.embeddings))
    embeddings = {**trace.embeddings, side: change(trace.embeddings[side])}
    return replace(run, attention=forged(trace, embeddings=embeddings))


def test_every_network_and_encoding_reads_what_its_labels_name_and_no_other(networked):
    run, trace = networked, networked.attention
    report = run.audit()
    assert not wrong(run)
    assert "tokens" in {check.name for check in report.checks}
    assert (report.unmade, trace.audit().placed) == ((), True)
    if run.source_tokens:
        assert "text" in wrong(replace(run, source_tokens=exchanged(run.source_tokens)))
    later = (*run.target_tokens[1:], run.target_tokens[0])
    assert wrong(replace(run, target_tokens=later)) >= {"text"}
    assert wrong(replace(run, decoder_input_tokens=later)) >= {"text"}
    # whoever also exchanges what the trace says of its tokens meets the recorded embeddings
    side = next(iter(trace.embeddings))
    own = trace.tokens[side]
    swapped = replace(own, ids=exchanged(own.ids), pieces=exchanged(own.pieces))
    name = "source_tokens" if side == "encoder" else "decoder_input_tokens"
    mixed = replace(trace, tokens={**trace.tokens, side: swapped})
    assert "tokens" in wrong(replace(run, attention=mixed, **{name: swapped.pieces}))

    def shift(each: EmbeddingTrace) -> EmbeddingTrace:
        """Parts that were shifted, their sum as it was."""
        by = torch.full_like(each.tokens, 0.5)
        positions = -by if each.positions is None else each.positions - by
        return replace(each, tokens=each.tokens + by, positions=positions)

    assert "tokens" in wrong(with_embedding(run, shift))


def test_positions_of_the_next_token_and_the_trace_of_another_sentence_fail(translator, english):
    next_one = with_embedding(
        english, lambda each: replace(each, positions=each.positions.roll(1, 0))
    )
    assert wrong(next_one) == {"embeddings", "positions"}
    other = translator.force(OTHER, "two one four three")
    assert {"labels", "text"} <= wrong(replace(english, attention=other.attention))
    others = {"source_text": OTHER, "text": "one two four three", "steps": ()}
    for name, value in [*others.items(), ("steps", english.steps[1:])]:
        assert wrong(replace(english, **{name: value})) == {"text"}


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_a_file_says_what_could_not_be_checked(translator, tmp_path: Path, positions):
    run = run_of(positions, translator)
    save_trace(run, tmp_path / "run.npz")
    report = load_trace(tmp_path / "run.npz").audit()
    assert (report.passed, report.imported, report.placed) == (True, True, False)
    assert LABELS_UNMADE in report.unmade
    assert (POSITIONS_UNMADE in report.unmade) == (positions == "learned")
    if positions == "sinusoidal":  # with the positions of another formula
        shifted = {
            side: replace(each, tokens=each.tokens + 0.1, positions=each.positions - 0.1)
            for side, each in run.attention.embeddings.items()
        }
        save_trace(
            replace(run, attention=forged(run.attention, embeddings=shifted)), tmp_path / "run.npz"
        )
        assert not load_trace(tmp_path / "run.npz").audit().passed
