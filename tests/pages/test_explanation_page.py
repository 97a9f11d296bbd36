"""The page "Is attention an explanation?" shows what the measures give."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from app_pages import array, feeds, named_charts, run, words

from explorer.app.maps.measures import Explained
from explorer.app.server import catalogue
from explorer.app.views.explanation import sources
from explorer.app.views.explanation import weights as weights_view
from explorer.figures.base.bars import percent
from explorer.lenses.measures.agreement import agreement
from explorer.lenses.measures.alti import alti
from explorer.lenses.measures.attribution import attribution, by_source
from explorer.lenses.measures.carried import Carried, carried
from explorer.lenses.measures.effect import Cut, Effects, effect, on_difference
from explorer.lenses.measures.words import word_effect
from transformer import Capture, interventions, load_translator
from transformer.config import AttentionKind
from transformer.view import AuditReport

PAGE = "pages/explanation.py"
TEXT = "one two three"
opened = partial(run, PAGE, model="random", text=TEXT, step="2")


@pytest.fixture
def traced():
    translator = load_translator(catalogue.directory("random"))
    return translator, translator.translate(TEXT, capture=Capture(residual=True))


def number(note: str) -> float:
    return float(note.rsplit(": ", 1)[1].replace("−", "-").replace("–", "nan"))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_rows_are_weight_what_was_carried_and_effects(traced, kind: str):
    translator, translation = traced
    at = opened(kind=kind, **{kind: "2.3"}, source="2")
    row = 1
    notes = named_charts(at)["measures"]["data"][0]["hovertext"]
    values = [
        [float(note.rsplit(": ", 1)[1].replace("−", "-").replace("–", "nan")) for note in each]
        for each in notes
    ]
    step = 1 if kind == "encoder" else None
    found = carried(translator.model, translation, kind, 1, 2)
    expected = [
        [*translation.weights(kind, 1, 2)[row], np.nan],
        [*found.values, found.bias],
        [*found.norms[row], found.bias],
        *(
            [*effect(translator, translation, kind, 1, 2, way, step, [row])[row], np.nan]
            for way in ("hidden", "zeroed", "mean")
        ),
    ]
    for shown, own in zip(values, expected, strict=True):
        np.testing.assert_allclose(shown, own, atol=0.0051)


def test_a_run_that_would_take_hours_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("explorer.app.maps.measures.MOST_TOKENS", 3)
    at = opened()
    assert len(at.error) == 1
    assert "for at most 3 tokens a side" in at.error[0].value
    assert not named_charts(at)


def test_a_large_weight_on_a_short_value_is_called_a_sink():
    weights = np.array([[0.7, 0.2, 0.1]])
    effects = {way: np.array([[-0.5, -0.1, 0.0]]) for way in ("hidden", "zeroed", "mean")}
    for short, told in ((0.1, True), (0.9, False)):
        values = np.array([short, 1.0, 1.1])
        own = Carried(weights * values, values, 0.2, AuditReport(()))
        said = weights_view.told(Explained(weights, own, effects, (0,), None, None), 0, ["a", "b", "c"], "x")
        assert (f"a sink: its value is {short:.2f} long, the median 1.00" in said) is told


def test_a_large_weight_that_is_hardly_needed_is_said_first():
    weights, lengths = np.array([[0.7, 0.2, 0.1]]), np.ones(3)
    own = Carried(weights * lengths, lengths, 0.2, AuditReport(()))
    for effects, told in (
        ([-0.01, 0.0, 0.0], "70 % of its weight lies on **a**, yet “x” hardly needs it"),
        ([-0.01, -0.9, 0.0], "“x” loses most without **b**: −0.90 nats."),
        (
            [-0.4, 0.0, 0.0],
            "Its largest weight, 70 %, lies on **a**, which also carried most. “x” loses most",
        ),
    ):
        found = Explained(weights, own, {"hidden": np.array([effects])}, (0,), None, None)
        assert told in weights_view.told(found, 0, ["a", "b", "c"], "x").replace("\u00a0", " ")


@pytest.mark.parametrize("kind", ["encoder", "cross"])
def test_whole_words_are_taken_away_everywhere_and_layer_by_layer(traced, kind: str):
    translator, translation = traced
    made = Effects(translator, translation)
    out = [*(float(made.left_out([key])[1]) for key in range(3)), np.nan]
    drawn = named_charts(opened(kind=kind, **{kind: "2.3"}, way="mean"))
    notes = drawn["words"]["data"][0]["hovertext"]
    ways = ("hidden", "zeroed", "mean")
    everywhere = {way: word_effect(translator, translation, kind, way)[1] for way in ways}
    for shown, own in zip(notes, [*everywhere.values(), out], strict=True):
        np.testing.assert_allclose([number(note) for note in shown], own, atol=0.0051)
    layers = range(translation.config.sites[AttentionKind(kind)].n_layers)
    alone = [word_effect(translator, translation, kind, "mean", layer)[1] for layer in layers]
    by_layer = drawn["words by layer"]["data"][0]["hovertext"]
    expected = [*alone, np.sum(alone, 0), everywhere["mean"]]
    for shown, own in zip(by_layer, expected, strict=True):
        np.testing.assert_allclose([number(note) for note in shown], own, atol=0.0051)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_other_weights_are_runs_with_that_row_set(traced, kind: str):
    translator, translation = traced
    at = opened(kind=kind, **{kind: "2.3"}, source="2")
    bars = named_charts(at)["other weights"]["data"][0]
    values, row = array(bars["x"]), 1
    weights = [
        translation.mask(kind, 1, 2)[row] / translation.mask(kind, 1, 2)[row].sum(),
        *(translation.weights(kind, 1, head)[row] for head in (0, 1, 3)),
    ]
    for value, other in zip(values[[0, 3, 4, 5]], weights, strict=True):
        change = interventions.set_row(kind, 1, 2, row, dict(enumerate(map(float, other))))
        changed = translator.force(TEXT, translation.target_ids, interventions=[change])
        assert value == pytest.approx(changed.log_probs[1] - translation.log_probs[1], abs=1e-3)
    assert values[2] <= values[1]
    assert "of the weights of the layer's other heads" in words(at)


def test_words_of_the_prefix_are_no_source_words():
    assert "words" not in named_charts(opened(kind="decoder"))


def test_ranks_are_compared_with_chance(traced):
    at = opened(kind="cross", cross="2.3")
    assert "with permuted cells" in words(at)
    dots = named_charts(at)["dots"]["data"][0]
    assert len(array(dots["x"])) == len(array(dots["y"])) > 3


def test_the_parts_of_a_difference_of_logits_sum_to_it(traced):
    translator, translation = traced
    written = translation.steps[1]
    rival = next(each for each in written.alternatives if each.token_id != written.token_id)
    found = attribution(translator.model, translation, 1, written.token_id, rival.token_id)
    at = opened(view="why", rival=rival.token)
    assert array(named_charts(at)["parts"]["data"][0]["x"]).sum() == pytest.approx(found.total, abs=1e-3)
    assert {"tokens.cross"} <= set(named_charts(at))


def test_a_recurrent_model_is_told_apart():
    at = opened(model="copy", changes="hide_1")
    assert not at.exception


def test_rank_correlation_by_hand():
    first, second = np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 30.0, 20.0, np.nan])
    assert agreement(first, second).value == pytest.approx(0.5)
    assert agreement(first, second).cells == 3
    assert np.isnan(agreement(first, np.ones(4)).value)
    tied = agreement(np.array([1.0, 1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert tied.value == pytest.approx(0.9486833)


def test_shares_of_the_source_are_those_of_the_lens_and_rollout_stands_beside_them(traced):
    translator, translation = traced
    found = alti(translator.model, translation).source
    at = opened(view="why")
    drawn = named_charts(at)
    source, prefix, rolled = (array(each["y"]) for each in drawn["source share"]["data"])
    np.testing.assert_allclose(source, found.sum(1), atol=1e-5)
    np.testing.assert_allclose(source + prefix, 1, atol=1e-5)
    np.testing.assert_allclose(rolled, 1 - 2.0**-translation.config.n_decoder_layers, atol=1e-6)
    told = " ".join(each.value for each in at.caption).replace("\\", "")
    assert f"whose {rolled[0]:.3f} is the same for every step" in told
    notes = drawn["source tokens"]["data"][0]["hovertext"]
    assert [round(number(note), 2) for note in notes[1]] == pytest.approx(found[1].tolist(), abs=0.0051)
    assert f"{percent(float(found[1].sum()))} of what predicts it comes from the source" in words(at)


def test_by_token_stand_part_effect_on_the_same_difference_and_share(traced):
    translator, translation = traced
    step = translation.steps[1]
    rival = next(each for each in step.alternatives if each.token_id != step.token_id)
    part = by_source(translator.model, translation, 1, step.token_id, rival.token_id)
    shares = alti(translator.model, translation).source[1]
    at = opened(view="why", rival=rival.token)
    notes = named_charts(at)["tokens.cross"]["data"][0]["hovertext"]
    effects = on_difference(translator, translation, 1, rival.token_id)
    for said, values in zip(notes, (part, effects, shares), strict=True):
        np.testing.assert_allclose([number(note) for note in said], values, atol=0.006)


def test_the_first_step_and_the_end_are_told_apart(traced):
    translator, translation = traced
    found = alti(translator.model, translation).source.sum(1)
    told = words(opened(view="why"))
    assert f"has no prefix but a start, has {percent(float(found[0]))}" in told
    ends = translation.target_tokens[-1] == "</s>"
    inner = found[1 : len(found) - ends]
    assert f"**{percent(float(inner.mean()))}** comes from the source" in told
    assert ("which ends the sentence" in told) is ends


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_short_translations_have_a_sentence_on_their_shares(count: int):
    shares = np.linspace(0.9, 0.3, count)
    steps = [*"abcdefg"[: count - 1], "</s>"]
    told = sources.told(steps, shares)
    assert percent(0.9) in told
    if count > 1:
        assert f"`</s>`, which ends the sentence, {percent(0.3)}" in told
    if count > 2:
        assert f"**{percent(float(shares[1:-1].mean()))}** comes from" in told


def test_the_home_page_shades_tokens_by_their_source_share(traced):
    translator, translation = traced
    found = alti(translator.model, translation).source.sum(1)
    chips = feeds(run(model="random", text=TEXT, shares="yes"))["strips"]["target"]
    assert chips[0]["shade"] == pytest.approx(max(found[: chips[0]["last"] + 1]), abs=1e-5)
    assert "from the source (ALTI+)" in chips[0]["title"]
    for chip in chips:
        number = percent(float(max(found[chip["first"] : chip["last"] + 1])))
        assert chip["gloss"] == {"text": number, "origin": "source (ALTI+)"}
    assert "shade" not in feeds(run(model="random", text=TEXT))["strips"]["target"][0]


def test_the_source_share_is_one_click_away_from_the_translation():
    at = run(model="random", text=TEXT)
    for on in (True, False):
        next(each for each in at.button if each.label == "Source share").click().run()
        assert ("shade" in feeds(at)["strips"]["target"][0]) is on
        assert ("shares" in at.query_params) is on


def test_two_keys_together_are_a_run_of_their_own(traced):
    translator, translation = traced
    made = Effects(translator, translation)
    at = opened(kind="cross", cross="2.3")
    alone = effect(translator, translation, "cross", 1, 2, rows=[1])[1]
    first, second = np.argsort(-np.abs(alone))[:2].tolist()
    (together,) = made.of([(Cut(AttentionKind.CROSS, (first, second), "hidden", 1, 2, 1),)])
    said = words(at).replace("−", "-")
    assert f"Δ log p is {float(together[1]):+.2f} nats; each alone gives" in said
    assert f"gives {float(alone[first] + alone[second]):+.2f} in sum" in said


def test_a_stretch_with_a_low_share_of_the_source_is_a_warning() -> None:
    steps = ["a", "b", "c", "d", "e", "</s>"]
    low = np.array([0.1, 0.9, 0.2, 0.3, 0.2, 0.1])
    said = sources.detached(steps, low, 0.4)
    assert "From “c” to “e”, 3 steps" in said
    assert "40" in said
    assert sources.detached(steps, np.array([0.1, 0.2, 0.3, 0.9, 0.2, 0.1]), 0.4) == ""
    assert sources.detached(steps, low, 0.2) == ""


def test_a_token_that_is_no_other_of_the_step_is_replaced_with_a_line():
    at = opened(view="why", rival="▁nonsense")
    assert not at.exception
    assert any("“nonsense” is no other token of this step, so" in each.value for each in at.caption)
