"""The page "Is attention an explanation?" shows what the measures give."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from app_pages import array, feeds, named_charts, run, words

from transformer import Capture, load_translator
from transformer.lenses.measures.agreement import agreement
from transformer.lenses.measures.alti import alti
from transformer.lenses.measures.attribution import attribution
from transformer.lenses.measures.carried import carried
from transformer.lenses.measures.effect import effect
from ui.server import catalogue

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
    expected = [
        translation.weights(kind, 1, 2)[row],
        carried(translator.model, translation, kind, 1, 2).norms[row],
        *(
            effect(translator, translation, kind, 1, 2, way, step, [row])[row]
            for way in ("hidden", "zeroed", "mean")
        ),
    ]
    for shown, own in zip(values, expected, strict=True):
        np.testing.assert_allclose(shown, own, atol=0.0051)


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
    assert {"tokens.cross", "tokens.decoder"} <= set(named_charts(at))


def test_the_last_draft_is_the_translation(traced):
    at = opened(view="drafts")
    assert f"**{traced[1].text}**" in words(at).replace("\\", "")
    assert "lens" in named_charts(at)


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
    at = opened(view="sources")
    drawn = named_charts(at)
    source, prefix, rolled = (array(each["y"]) for each in drawn["source share"]["data"])
    np.testing.assert_allclose(source, found.sum(1), atol=1e-5)
    np.testing.assert_allclose(source + prefix, 1, atol=1e-5)
    np.testing.assert_allclose(rolled, 1 - 2.0**-translation.config.n_decoder_layers, atol=1e-6)
    assert f"source share is {rolled[0]:.3f} at every step" in words(at)
    notes = drawn["source tokens"]["data"][0]["hovertext"]
    assert [round(number(note), 2) for note in notes[1]] == pytest.approx(found[1].tolist(), abs=0.0051)


def test_the_home_page_shades_tokens_by_their_source_share(traced):
    translator, translation = traced
    found = alti(translator.model, translation).source.sum(1)
    chips = feeds(run(model="random", text=TEXT, shares="yes"))["strips"]["target"]
    assert chips[0]["shade"] == pytest.approx(max(found[: chips[0]["last"] + 1]), abs=1e-5)
    assert "from the source (ALTI+)" in chips[0]["title"]
    assert "shade" not in feeds(run(model="random", text=TEXT))["strips"]["target"][0]
