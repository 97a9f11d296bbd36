"""What measures prove of themselves and refuse, and laws that they obey; numbers:
test_forgeries.py."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import random_model, random_recurrent, random_translator

from explorer import lenses
from explorer.lenses.measures.effect import LEAST, ON_ALL, WAYS, effect_in, effect_map
from explorer.lenses.measures.stream import carried_map, shares
from explorer.lenses.words.reading import Reading, read_view
from transformer import Capture, Window, interventions
from transformer.encodings import REGISTRY
from transformer.run import Translation
from transformer.translator import Translator

TEXT, TARGET = "one zebra three nine", "two one four"
MODELS = [("pre", name) for name in REGISTRY] + [("post", "sinusoidal"), ("post", "t5")]
Run = tuple[Translator, Translation]


def forced(model: Translator, **more) -> Translation:
    return model.force(TEXT, TARGET, capture=Capture(residual=True), **more)


@pytest.fixture(scope="module", params=MODELS, ids=lambda each: " ".join(each))
def each_model(request: pytest.FixtureRequest, translator: Translator) -> Run:
    model = random_translator(translator.tokenizer, *request.param)
    return model, forced(model)


@pytest.fixture(scope="module", params=["pre", "post"])
def run(request: pytest.FixtureRequest, translator: Translator) -> Run:
    network = random_model(vocab_size=translator.config.vocab_size, norm=request.param, scale=0.6)
    model = Translator(network.eval(), translator.tokenizer, name="random")
    return model, forced(model)


def test_every_sum_is_audited(each_model: Run):
    model, translation = each_model
    for kind in model.config.sites:
        assert lenses.carried(model.model, translation, kind, 1, 1).audit.passed
        assert lenses.score_parts(model.model, translation, (kind, 1, 0), 2, 1).audit.passed
    assert lenses.attribution(model.model, translation, 2, 9, 6).audit.passed
    found = lenses.alti(model.model, translation)
    assert found.audit.passed
    np.testing.assert_allclose(found.source.sum(1) + found.prefix.sum(1), 1, atol=1e-5)


def test_the_largest_parts_stand_in_order_and_the_others_are_one(run: Run):
    found = lenses.attribution(run[0].model, run[1], 2, 9, 6)
    count = len(found.values)
    shown = found.largest(3)
    most = sorted(found.values.tolist(), key=abs)[-3:]
    assert [value for _, value in shown[:3]] == pytest.approx(sorted(most, reverse=True))
    assert [name for name, _ in shown[3:]] == [f"{count - 3} others"]
    assert sum(value for _, value in shown) == pytest.approx(found.total, abs=1e-3)
    assert len(found.largest(count)) == count


def test_what_a_key_carries_is_measured_by_the_length_of_its_vector(run: Run):
    """One cell by hand: a length is the root of a sum of squares."""
    translator, translation = run
    layer, head, query, key = 1, 2, 3, 1
    attention = translator.model.decoder.layers[layer].cross_attention
    biases = attention.v_proj.bias.view(attention.n_heads, -1)
    bias = biases[head]
    matrix = attention.out_proj.weight.unflatten(1, biases.shape)[:, head]
    values = translation.trace.layer("cross", layer).value
    weights = torch.as_tensor(translation.trace.weights("cross", layer))
    carried = lenses.carried(translator.model, translation, "cross", layer, head)
    length = math.hypot(*(matrix @ (values[head, key] - bias)).tolist())
    assert carried.values[key] == pytest.approx(length, rel=1e-4)
    weight = float(weights[head, query, key])
    assert carried.norms[query, key] == pytest.approx(weight * length, rel=1e-4)
    assert carried.bias == pytest.approx(math.hypot(*(matrix @ bias).tolist()), rel=1e-4)
    reads = (values[:, key] - biases) * weights[:, query, key, None]
    together = lenses.carried_together(translator.model, translation, "cross", layer)
    length = math.hypot(*(attention.out_proj.weight @ reads.flatten()).tolist())
    assert together[query, key] == pytest.approx(length, rel=1e-4)


ASKS = {
    "name the step": lambda model, run: lenses.effect(model, run, "encoder", 0, 0),
    "no cross layer 9": lambda model, run: lenses.word_effect(model, run, layer=9),
    "no encoder layer -1": lambda model, run: lenses.word_effect(model, run, "encoder", layer=-1),
    "no step 9": lambda model, run: lenses.effect(model, run, "cross", 0, 0, step=9),
    "no step -1": lambda model, run: lenses.attribution(model.model, run, -1, 5),
    "no target token 9999": lambda model, run: lenses.attribution(model.model, run, 0, 5, 9999),
    "no target token -1": lambda model, run: lenses.attribution(model.model, run, 0, -1),
    "no cell \\(1, 99\\)": lambda model, run: lenses.score_parts(
        model.model, run, ("cross", 0, 0), 1, 99
    ),
    "no head 9": lambda model, run: lenses.carried(model.model, run, "cross", 0, 9),
}


@pytest.mark.parametrize("told", ASKS)
def test_what_cannot_be_asked_is_refused(run: Run, told: str):
    with pytest.raises((lenses.UnmeasuredError, IndexError), match=told):
        ASKS[told](*run)


def test_a_changed_run_is_refused(run: Run):
    model = run[0]
    changed = forced(model, interventions=[interventions.hide(1)])
    for ask in ("attribution", "carried", "on_difference", "score_parts"):
        with pytest.raises(lenses.UnmeasuredError, match="without changes"):
            EVERY[ask](model, changed)


def test_cells_have_effects_but_the_only_key_of_a_query_cannot_be_hidden(run: Run):
    assert np.isnan(lenses.effect(*run, "decoder", 0, 0, rows=[0])).all()
    for way in WAYS:
        found = lenses.effect(*run, "encoder", 0, None, way, step=1, rows=[1])
        assert np.isfinite(found[1]).all()
        assert np.isnan(np.delete(found, 1, 0)).all()
        assert np.abs(found[1]).max() > 0


def test_progress_is_told_and_may_end_a_measurement(run: Run):
    told: list[float] = []
    lenses.effect(*run, "cross", 1, 0, tell=told.append)
    assert told == sorted(told)
    assert told[-1] == 1

    def leave(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lenses.effect(*run, "cross", 1, 0, tell=leave)


def test_rows_in_chunks_are_those_at_once(run: Run, monkeypatch):
    whole = lenses.alti(run[0].model, run[1])
    monkeypatch.setattr("explorer.lenses.measures.attribution.AT_ONCE", 1)
    np.testing.assert_allclose(lenses.alti(run[0].model, run[1]).source, whole.source, atol=1e-7)


# --- Measures in the place of weights ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_window_of_what_was_carried_holds_shares_of_whole_rows(run: Run, kind):
    assert shares(np.array([[1, 3], [0, 0]], dtype=np.float32)).tolist() == [[0.25, 0.75], [0, 0]]
    found = lenses.carried(run[0].model, run[1], kind, 1, 2)
    view = carried_map(run[1].map(kind, 1, 2, Window(1, 3, 1, 2)), found)
    whole = found.norms / found.norms.sum(1, keepdims=True)
    np.testing.assert_allclose(view.weights, whole[1:3, 1:2], rtol=1e-5)
    np.testing.assert_array_equal(view.measured, found.norms[1:3, 1:2])
    assert view.measure == "carried"
    assert (view.audit.passed, view.audit.claim) == (True, "sums up")
    assert not replace(view, weights=view.weights[::-1]).audit.passed
    assert not read_view(replace(view, key_tokens=("▁x",)), Reading()).audit.passed
    assert {check.name for check in found.audit.checks} < {
        check.name for check in view.audit.checks
    }


def test_colours_are_shares_of_the_largest_effect_and_small_effects_stay_pale(run: Run):
    view = run[1].map("decoder", 0, 0)
    effects = np.where(view.mask, np.float32(0), np.float32(np.nan))
    effects[1, 0], effects[2, 1] = -2, 1
    found = effect_map(view, effects)
    assert (found.weights[1, 0], found.weights[2, 1], found.weights[~view.mask].sum()) == (
        1,
        0.5,
        0,
    )
    assert found.audit.claim == f"from {view.mask.sum() + 1} runs"
    assert found.audit.passed
    assert not replace(found, measured=-effects).audit.passed
    assert effect_map(run[1].map("encoder", 0, 0), effects).measure == ON_ALL
    assert effect_map(view, effects / 100).weights.max() == pytest.approx(0.02 / LEAST)


# --- all measures --------------------------------------------------------------------------------

EVERY: dict[str, Callable[..., object]] = {
    "alti": lambda model, run: lenses.alti(model.model, run),
    "attribution": lambda model, run: lenses.attribution(model.model, run, 0, 5),
    "carried": lambda model, run: lenses.carried(model.model, run, "cross", 0, 0),
    "carried_together": lambda model, run: lenses.carried_together(model.model, run, "cross", 0),
    "effect": lambda model, run: lenses.effect(model, run, "cross", 0, 0),
    "rewired": lambda model, run: lenses.rewired(
        model, run, "cross", 0, 0, run.weights("cross", 0, 0)[None]
    ),
    "score_parts": lambda model, run: lenses.score_parts(model.model, run, ("cross", 0, 0), 0, 0),
    "value_zeroing": lambda model, run: lenses.value_zeroing(model.model, run, "cross", 0),
    "by_key": lambda model, run: lenses.by_key(model.model, run, 0, 5),
    "on_difference": lambda model, run: lenses.on_difference(model, run, 0, 5),
    "word_effect": lambda model, run: lenses.word_effect(model, run),
}
OTHERS: dict[str, Callable[..., object]] = {
    "Effects": lenses.Effects,
    "effect_in": lambda model, run: effect_in(model, run, "cross", 0, 0, Window(0, 1, 0, 1)),
}


@pytest.mark.parametrize("score", ["dot", "additive", "local"])
def test_every_measure_refuses_a_recurrent_model_in_one_sentence(
    score: str, translator: Translator
):
    network = random_recurrent(score, vocab_size=translator.config.vocab_size)
    model = Translator(network, translator.tokenizer, name="recurrent")
    run = model.force("one two three", "two one", capture=Capture(residual=True))
    measures = {name for name in lenses.__all__ if name[0].islower()}
    assert measures - {"key_words", "compare_runs"} == {*EVERY}
    for ask in (EVERY | OTHERS).values():
        with pytest.raises(
            lenses.UnmeasuredError, match=r"^This measure needs a Transformer[^.]*\.$"
        ):
            ask(model, run)
