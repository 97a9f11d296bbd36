"""The page "Is attention an explanation?" shows what the measures give."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from app_pages import array, feeds, functions, named_charts, run, words

from explorer.app.server import catalogue
from explorer.figures.base.bars import percent
from explorer.lenses.measures.attribution import alti, attribution, by_source
from explorer.lenses.measures.carried import carried
from explorer.lenses.measures.effect import effect, on_difference, word_effect
from transformer import Capture, load_translator

PAGE = "pages/explanation.py"
TEXT = "one two three"
opened = partial(run, PAGE, model="random", text=TEXT, step="2")


@pytest.fixture(scope="module")
def page():
    return functions(PAGE)


@pytest.fixture
def traced():
    translator = load_translator(catalogue.directory("random"))
    return translator, translator.translate(TEXT, capture=Capture(residual=True))


def number(note: str) -> float:
    return float(note.rsplit(": ", 1)[1].replace("−", "-").replace("–", "nan"))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_rows_are_weight_what_was_carried_and_the_effect(traced, kind: str):
    translator, translation = traced
    notes = named_charts(opened(kind=kind, **{kind: "2.3"}, source="2"))["measures"]["data"][0]["hovertext"]
    row, step = 1, 1 if kind == "encoder" else None
    found = carried(translator.model, translation, kind, 1, 2)
    expected = [
        [*translation.weights(kind, 1, 2)[row], np.nan],
        [*found.norms[row], found.bias],
        [*effect(translator, translation, kind, 1, 2, "hidden", step, [row])[row], np.nan],
    ]
    for shown, own in zip(notes, expected, strict=True):
        np.testing.assert_allclose([number(note) for note in shown], own, atol=0.0051)


def test_a_run_that_would_take_hours_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("explorer.app.maps.measures.MOST_TOKENS", 3)
    at = opened(text="one two three four")
    assert len(at.error) == 1
    assert "for at most 3 tokens a side" in at.error[0].value
    assert not named_charts(at)


@pytest.mark.parametrize(
    ("value", "effects", "told"),
    [
        (
            0.1,
            [-0.5, -0.1, 0.0],
            "**a**, which also carried most (a sink: its value is 0.10 long, the median 1.00)",
        ),
        (0.1, [-0.5, -0.9, 0.0], "“x” loses most without **b**: −0.90 nats."),
        (
            0.9,
            [-0.01, 0.0, 0.0],
            "also carried most. Without any single key of it, “x” stays about as probable.",
        ),
        (
            0.9,
            [np.nan, np.nan, np.nan],
            "This query sees one key only, so nothing can be taken away from it.",
        ),
    ],
)
def test_a_row_says_where_weight_and_effect_are_largest(page, value: float, effects: list[float], told: str):
    weights, lengths = np.array([0.7, 0.2, 0.1]), np.array([value, 1.0, 1.1])
    norms = np.array([0.9, 0.2, 0.1])
    assert told in page["differ"](weights, lengths, norms, np.array(effects), ["a", "b", "c"], "x")


@pytest.mark.parametrize(
    ("effects", "told"),
    [
        ([-0.3, -5.6, 0.1], "**“x” rests on “b”**: without it −5.60 nats; next “a”, −0.30."),
        (
            [-0.04, -5.6, 0.1],
            "**“x” rests on “b”**: without it −5.60 nats; no other word costs it 0.05 nats.",
        ),
        ([-0.04, 0.0, 0.1], "“x” rests on no single source word: none of them costs it 0.05 nats."),
    ],
)
def test_the_answer_names_the_words_that_a_token_rests_on(page, effects: list[float], told: str):
    assert page["rests_on"](["a", "b", "c"], np.array(effects), "x") == told


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_whole_words_are_hidden_from_all_of_cross_attention_whatever_row_is_shown(traced, kind: str):
    translator, translation = traced
    bars = named_charts(opened(kind=kind, **{kind: "2.3"}))["words"]["data"][0]
    expected = word_effect(translator, translation, "cross", "hidden")[1]
    np.testing.assert_allclose(array(bars["x"]), expected, atol=1e-4)


def test_what_is_folded_is_not_computed():
    assert set(named_charts(opened())) == {"words", "measures"}


def test_the_parts_of_a_difference_of_logits_sum_to_it(traced):
    translator, translation = traced
    written = translation.steps[1]
    rival = next(each for each in written.alternatives if each.token_id != written.token_id)
    found = attribution(translator.model, translation, 1, written.token_id, rival.token_id)
    drawn = named_charts(opened(view="why", rival=rival.token))
    assert array(drawn["parts"]["data"][0]["x"]).sum() == pytest.approx(found.total, abs=1e-3)
    part = by_source(translator.model, translation, 1, written.token_id, rival.token_id)
    effects = on_difference(translator, translation, 1, rival.token_id)
    for said, values in zip(drawn["tokens.cross"]["data"][0]["hovertext"], (part, effects), strict=True):
        np.testing.assert_allclose([number(note) for note in said], values, atol=0.006)


def test_a_recurrent_model_is_told_apart():
    at = opened(model="copy", changes="hide_1")
    assert not at.exception


def test_shares_of_the_source_are_those_of_the_lens_and_rollout_stands_beside_them(traced):
    translator, translation = traced
    found = alti(translator.model, translation).source
    at = opened(view="shares")
    drawn = named_charts(at)
    source, prefix, rolled = (array(each["y"]) for each in drawn["source share"]["data"])
    np.testing.assert_allclose(source, found.sum(1), atol=1e-5)
    np.testing.assert_allclose(source + prefix, 1, atol=1e-5)
    np.testing.assert_allclose(rolled, 1 - 2.0**-translation.config.n_decoder_layers, atol=1e-6)
    notes = drawn["source tokens"]["data"][0]["hovertext"]
    assert [round(number(note), 2) for note in notes[1]] == pytest.approx(found[1].tolist(), abs=0.0051)
    assert f"{percent(float(found[1].sum()))} from the source" in words(at)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_short_translations_have_a_sentence_on_their_shares(page, count: int):
    shares = np.linspace(0.9, 0.3, count)
    steps = [*"abcdefg"[: count - 1], "</s>"]
    told = page["leaning"](steps, shares)
    assert percent(0.9) in told
    if count > 1:
        assert f"`</s>`, which ends the sentence, {percent(0.3)}" in told
    if count > 2:
        assert f"it is **{percent(float(shares[1:-1].mean()))}**" in told


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


def test_a_stretch_with_a_low_share_of_the_source_is_a_warning(page) -> None:
    steps = ["a", "b", "c", "d", "e", "</s>"]
    low = np.array([0.1, 0.9, 0.2, 0.3, 0.2, 0.1])
    said = page["detached"](steps, low, 0.4)
    assert "From “c” to “e”, 3 steps" in said
    assert "40" in said
    assert page["detached"](steps, np.array([0.1, 0.2, 0.3, 0.9, 0.2, 0.1]), 0.4) == ""
    assert page["detached"](steps, low, 0.2) == ""


def test_a_token_that_is_no_other_of_the_step_is_replaced_with_a_line():
    at = opened(view="why", rival="▁nonsense")
    assert not at.exception
    assert any("“nonsense” is no other token of this step, so" in each.value for each in at.caption)
