"""What measures prove of themselves and refuse, and laws that they obey; numbers: test_forgeries.py."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from random_models import random_model, random_recurrent, random_translator

from explorer import lenses
from explorer.lenses import (
    Effects,
    UnmeasuredError,
    alti,
    attribution,
    carried,
    effect,
    rewired,
    rollout,
    saliency,
    score_parts,
    source_words,
    word_effect,
)
from explorer.lenses.measures.effect import LEAST, ON_ALL, WAYS, effect_in, effect_map
from explorer.lenses.measures.stream import carried_map, shares
from transformer import Capture, Window, interventions
from transformer.config import AttentionKind
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
        assert carried(model.model, translation, kind, 1, 1).audit.passed
        assert score_parts(model.model, translation, (kind, 1, 0), 2, 1).audit.passed
    assert attribution(model.model, translation, 2, 9, 6).audit.passed
    assert saliency(model, translation, 2, 9, 6).audit.passed
    found = alti(model.model, translation)
    assert found.audit.passed
    np.testing.assert_allclose(found.source.sum(1) + found.prefix.sum(1), 1, atol=1e-5)


def test_the_largest_parts_stand_in_order_and_the_others_are_one(run: Run):
    found = attribution(run[0].model, run[1], 2, 9, 6)
    count, shown = len(found.values), found.largest(3)
    most = sorted(found.values.tolist(), key=abs)[-3:]
    assert [value for _, value in shown[:3]] == pytest.approx(sorted(most, reverse=True))
    assert [name for name, _ in shown[3:]] == [f"{count - 3} others"]
    assert sum(value for _, value in shown) == pytest.approx(found.total, abs=1e-3)
    assert len(found.largest(count)) == count


ASKS = {
    "name the step": lambda model, run: effect(model, run, "encoder", 0, 0),
    "keys of the encoder and of cross-attention": lambda model, run: word_effect(model, run, "decoder"),
    "no source is left": lambda model, run: Effects(model, run).left_out(range(len(run.source_tokens) - 1)),
    "no cross layer 9": lambda model, run: word_effect(model, run, layer=9),
    "no encoder layer -1": lambda model, run: word_effect(model, run, "encoder", layer=-1),
    "no step 9": lambda model, run: effect(model, run, "cross", 0, 0, step=9),
    "no step -1": lambda model, run: saliency(model, run, -1, 5),
    "no target token 9999": lambda model, run: attribution(model.model, run, 0, 5, 9999),
    "no target token -1": lambda model, run: attribution(model.model, run, 0, -1),
    "no cell \\(1, 99\\)": lambda model, run: score_parts(model.model, run, ("cross", 0, 0), 1, 99),
    "no head 9": lambda model, run: carried(model.model, run, "cross", 0, 9),
}


@pytest.mark.parametrize("told", ASKS)
def test_what_cannot_be_asked_is_refused(run: Run, told: str):
    with pytest.raises((UnmeasuredError, IndexError), match=told):
        ASKS[told](*run)


def test_a_changed_run_is_refused(run: Run):
    model = run[0]
    changed = forced(model, interventions=[interventions.hide(1)])
    for ask in (
        lambda: attribution(model.model, changed, 0, 5),
        lambda: carried(model.model, changed, "cross", 0, 0),
        lambda: Effects(model, changed),
        lambda: saliency(model, changed, 0, 5),
        lambda: score_parts(model.model, changed, ("cross", 0, 0), 0, 0),
    ):
        with pytest.raises(UnmeasuredError, match="without changes"):
            ask()


def test_cells_have_effects_but_the_only_key_of_a_query_cannot_be_hidden(run: Run):
    assert np.isnan(effect(*run, "decoder", 0, 0, rows=[0])).all()
    for way in WAYS:
        found = effect(*run, "encoder", 0, None, way, step=1, rows=[1])
        assert np.isfinite(found[1]).all()
        assert np.isnan(np.delete(found, 1, 0)).all()
        assert np.abs(found[1]).max() > 0
    assert torch.isfinite(Effects(*run).left_out(range(1, len(run[1].source_tokens) - 1))).all()


def test_progress_is_told_and_may_end_a_measurement(run: Run):
    told: list[float] = []
    effect(*run, "cross", 1, 0, tell=told.append)
    assert told == sorted(told)
    assert told[-1] == 1

    def leave(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        effect(*run, "cross", 1, 0, tell=leave)


def test_words_hold_all_their_pieces_and_a_word_hidden_is_not_the_word_left_out(run: Run):
    words = source_words(run[1])
    assert [at for word in words for at in word.indices] == list(range(len(run[1].source_tokens)))
    assert (words[0].text, words[-1].text) == ("one", "</s>")
    assert any(len(word.indices) > 1 for word in words)
    out = Effects(*run).left_out(words[0].indices).numpy()
    assert np.abs(word_effect(*run)[:, 0] - out).max() > 1e-3


def test_other_weights_are_rows_set_and_its_own_change_nothing(run: Run):
    model, translation = run
    own = translation.weights("cross", 1, 2)
    np.testing.assert_allclose(rewired(*run, "cross", 1, 2, own[None]), 0, atol=1e-5)
    rows = np.random.default_rng(3).dirichlet(np.ones(own.shape[1]), 2).astype(np.float32)
    maps = np.stack([np.where(np.arange(len(own))[:, None] == 2, row, own) for row in rows])
    for found, row in zip(rewired(*run, "cross", 1, 2, maps), rows, strict=True):
        change = interventions.set_row("cross", 1, 2, 2, dict(enumerate(map(float, row))))
        expected = np.subtract(forced(model, interventions=[change]).log_probs, translation.log_probs)
        np.testing.assert_allclose(found, expected, atol=2e-4)


@pytest.mark.parametrize("silenced", [("cross",), ("encoder", "decoder")])
def test_heads_that_write_nothing_give_their_inputs_no_share(translator, silenced: tuple[str, ...]):
    model = random_translator(translator.tokenizer)
    with torch.no_grad():
        for kind in silenced:
            for layer in range(model.config.sites[AttentionKind(kind)].n_layers):
                model.model.attention(kind, layer).v_proj.weight.zero_()
    found = alti(model.model, forced(model))
    nothing = found.source if silenced == ("cross",) else found.prefix - np.diag(np.diag(found.prefix))
    assert np.abs(nothing).max() == 0


def test_rows_in_chunks_are_those_at_once(run: Run, monkeypatch):
    whole = alti(run[0].model, run[1])
    monkeypatch.setattr("explorer.lenses.measures.attribution.AT_ONCE", 1)
    np.testing.assert_allclose(alti(run[0].model, run[1]).source, whole.source, atol=1e-7)


def test_rollout_gives_every_step_the_same_share_whatever_the_model(run: Run):
    source, prefix = rollout(run[1])
    expected = 1 - 2.0 ** -run[0].config.n_decoder_layers
    np.testing.assert_allclose(source.sum(1), expected, atol=1e-6)
    np.testing.assert_allclose(prefix.sum(1), 1 - expected, atol=1e-6)


# --- Measures in the place of weights -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_window_of_what_was_carried_holds_shares_of_whole_rows(run: Run, kind):
    assert shares(np.array([[1, 3], [0, 0]], dtype=np.float32)).tolist() == [[0.25, 0.75], [0, 0]]
    found = carried(run[0].model, run[1], kind, 1, 2)
    view = carried_map(run[1].map(kind, 1, 2, Window(1, 3, 1, 2)), found)
    whole = found.norms / found.norms.sum(1, keepdims=True)
    np.testing.assert_allclose(view.weights, whole[1:3, 1:2], rtol=1e-5)
    np.testing.assert_array_equal(view.measured, found.norms[1:3, 1:2])
    assert view.measure == "carried"
    assert {check.name for check in found.audit.checks} < {check.name for check in view.audit.checks}


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_effects_in_a_window_are_those_of_the_whole_map(run: Run, kind):
    found = effect_in(*run, kind, 1, 2, Window(1, 4, 0, 2))
    step = "all" if kind == "encoder" else None
    np.testing.assert_allclose(found, effect(*run, kind, 1, 2, step=step)[1:4, :2], atol=1e-5)


def test_colours_are_shares_of_the_largest_effect_and_small_effects_stay_pale(run: Run):
    view = run[1].map("decoder", 0, 0)
    effects = np.where(view.mask, np.float32(0), np.float32(np.nan))
    effects[1, 0], effects[2, 1] = -2, 1
    found = effect_map(view, effects)
    assert (found.weights[1, 0], found.weights[2, 1], found.weights[~view.mask].sum()) == (1, 0.5, 0)
    assert found.audit.claim == f"from {view.mask.sum()} runs"
    assert effect_map(run[1].map("encoder", 0, 0), effects).measure == ON_ALL
    assert effect_map(view, effects / 100).weights.max() == pytest.approx(0.02 / LEAST)


# --- all measures -------------------------------------------------------------------------------------------

EVERY: dict[str, Callable[..., object]] = {
    "alti": lambda model, run: lenses.alti(model.model, run),
    "attribution": lambda model, run: lenses.attribution(model.model, run, 0, 5),
    "carried": lambda model, run: lenses.carried(model.model, run, "cross", 0, 0),
    "carried_together": lambda model, run: lenses.carried_together(model.model, run, "cross", 0),
    "effect": lambda model, run: lenses.effect(model, run, "cross", 0, 0),
    "rewired": lambda model, run: lenses.rewired(model, run, "cross", 0, 0, run.weights("cross", 0, 0)[None]),
    "rollout": lambda model, run: lenses.rollout(run),
    "saliency": lambda model, run: lenses.saliency(model, run, 0, 5),
    "score_parts": lambda model, run: lenses.score_parts(model.model, run, ("cross", 0, 0), 0, 0),
    "value_zeroing": lambda model, run: lenses.value_zeroing(model.model, run, "cross", 0),
    "by_source": lambda model, run: lenses.by_source(model.model, run, 0, 5),
    "on_difference": lambda model, run: lenses.on_difference(model, run, 0, 5),
    "word_effect": lambda model, run: lenses.word_effect(model, run),
}
OTHERS: dict[str, Callable[..., object]] = {
    "Effects": lenses.Effects,
    "effect_in": lambda model, run: effect_in(model, run, "cross", 0, 0, Window(0, 1, 0, 1)),
}


@pytest.mark.parametrize("score", ["dot", "additive", "local"])
def test_every_measure_refuses_a_recurrent_model_in_one_sentence(score: str, translator: Translator):
    network = random_recurrent(score, vocab_size=translator.config.vocab_size)
    model = Translator(network, translator.tokenizer, name="recurrent")
    run = model.force("one two three", "two one", capture=Capture(residual=True))
    measures = {name for name in lenses.__all__ if name[0].islower()}
    assert measures - {"source_words", "compare_runs"} == {*EVERY}
    for ask in (EVERY | OTHERS).values():
        with pytest.raises(lenses.UnmeasuredError, match=r"^This measure needs a Transformer[^.]*\.$"):
            ask(model, run)


def test_the_package_offers_its_names_and_alone_does_not_load_pytorch():
    code = "import sys; import explorer.lenses; print('torch' in sys.modules)"
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert {*lenses.__all__} <= {*dir(lenses)}
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = lenses.Nothing
