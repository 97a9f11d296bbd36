"""The section Causal trace: what it draws is what the model computes, and a cell becomes the same change."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from app_pages import ROOT, array, charts, run, said, words
from streamlit.testing.v1 import AppTest

from lenses.what_if.causal_trace import CausalTrace, causal_trace, changed_positions
from transformer import interventions as do
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from ui.server import examples, models
from ui.views.what_if.traced import GROUPS, Traced, percent_of, sentence

PAGE = "pages/what_if.py"
TEXT, OTHER, TARGET = "one two three four", "one two nine four", "eins zwei drei"

opened = partial(run, PAGE, model="random", text=TEXT, target=TARGET, view="causal", other=OTHER)


def translator() -> Translator:
    return models.find("random").translator()


def trace() -> CausalTrace:
    return causal_trace(translator(), TEXT, OTHER, TARGET)


def base() -> Translation:
    return translator().force(TEXT, TARGET)


def maps(at: AppTest) -> list[np.ndarray]:
    return [array(each["data"][0]["z"]) for each in charts(at) if each["data"][0]["type"] == "heatmap"]


@pytest.mark.parametrize("step", [None, 2])
def test_the_maps_are_the_shares_of_the_trace(step: int | None):
    at = opened(**({} if step is None else {"scored": str(step + 1)}))
    assert not at.error
    found = trace()
    encoder = np.concatenate([found.encoder_stream, found.encoder_output[None]])
    length = len(found.target_tokens)
    expected = [encoder, found.decoder_stream, found.cross_heads.reshape(-1, length, length)]
    for drawn, patched in zip(maps(at), expected, strict=True):
        assert drawn == pytest.approx(found.returned(patched, step), abs=1e-4)


def test_the_sentence_names_the_cost_and_the_largest_shares():
    at = opened()
    found = trace()
    assert f"**{abs(found.gap()):.2f} nats**" in words(at)
    assert percent_of(float(found.returned(found.cross_heads).max())) in words(at)
    assert "“nine” in place of “three”" in words(at)


@pytest.mark.parametrize(
    ("group", "row", "place"),
    [
        ("encoder", 0, do.embeddings("encoder")),
        ("encoder", 2, do.stream("encoder", 1, "feed_forward")),
        ("encoder", 3, do.encoder_output()),
        ("decoder", 0, do.stream("decoder", 0, "feed_forward")),
        ("heads", 6, do.head_output("cross", 1, 2)),
    ],
)
def test_a_cell_is_the_patch_of_its_place_with_the_same_number(group: str, row: int, place: object):
    shown = Traced(trace(), base(), None)
    assert shown.place(group, row) == place
    position = 2
    changes = [do.patch(shown.place(group, row), shown.base, [position])]
    patched = translator().force(OTHER, shown.base.target_ids, interventions=changes)
    gained = sum(patched.log_probs) - float(shown.found.changed.sum())
    share = float(shown.panels()[group].shares[row, position])
    assert gained == pytest.approx(share * shown.gap, abs=1e-4)
    assert f"{gained:+.2f}".replace("-", "−") in shown.panels()[group].notes[row][position]


def test_the_address_that_a_cell_opens_shows_the_same_number_as_a_change():
    shown = Traced(trace(), base(), None)
    change = do.patch(shown.place("decoder", 1), shown.base, [2])
    at = run(PAGE, model="random", text=OTHER, target=TARGET, changes=do.write_text([change]))
    assert not at.error
    (bars,) = (each["x"] for chart in charts(at) for each in chart["data"] if each["type"] == "bar")
    gained = float(shown.panels()["decoder"].shares[1, 2]) * shown.gap
    assert sum(bars) == pytest.approx(gained, abs=1e-4)
    assert f"together {gained:+.2f} nats".replace("-", "−") in words(at).replace("\\", "")


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (TEXT, "The two sentences are the same"),
        ("one two three", "as many tokens"),
        ("nine two three eight", "differ in 2 words"),
    ],
)
def test_sentences_that_cannot_be_aligned_are_refused_with_the_reason(other: str, reason: str):
    at = opened(other=other)
    assert reason in said(at)
    assert not maps(at)
    assert at.text_input[1].value == other, "what was typed stays"


def test_without_a_second_sentence_the_section_asks_for_one():
    at = opened(other="")
    assert "one other word" in said(at)


def test_a_long_sentence_is_refused_with_the_limit():
    at = opened(text="one " * 30, other="one " * 29 + "two")
    assert "at most 24 tokens; the sentence has 31" in said(at)


def test_a_long_translation_is_refused_with_the_limit():
    assert "at most 24 tokens; the sentence has 5" in said(opened(target="eins " * 30))


def test_changes_of_source_tokens_are_refused():
    assert "remove the changes of source tokens" in said(
        opened(changes=do.write_text([do.drop_source(1)]), target="eins")
    )


def test_the_model_s_own_translation_is_the_target_if_none_is_given():
    at = run(PAGE, model="copy", text="one two three", view="causal", other="one two nine")
    assert not at.error
    model = models.find("copy").translator()
    found = causal_trace(model, "one two three", "one two nine")
    assert found.differing == (2,)
    assert maps(at)[1] == pytest.approx(found.returned(found.decoder_stream), abs=1e-4)


def test_a_scored_token_beyond_the_translation_is_the_last_one():
    at = opened(scored="99")
    last = len(trace().target_tokens)
    assert f"scored token {last} is shown" in words(at)
    assert at.query_params["scored"] == "99"


def test_a_word_that_changes_nothing_gives_no_shares():
    found = trace()
    still = replace(found, changed=found.base)
    assert np.isnan(still.returned(still.decoder_stream)).all()


def test_the_table_has_a_row_for_each_cell_in_numbers_that_count_from_1():
    shown = Traced(trace(), base(), None)
    head, *rows = shown.table()
    assert head[:3] == ["place", "position", "token"]
    assert len(rows) == sum(panel.shares.size for panel in shown.panels().values())
    first = rows[0]
    assert first[:3] == ("encoder embeddings", 1, shown.found.base_tokens[0])
    assert first[3] * first[5] == pytest.approx(first[4])


def test_more_probable_is_said_where_the_other_word_helps():
    found = trace()
    helped = replace(found, base=found.base - 100)
    shown = Traced(helped, base(), None)
    assert "more probable" in sentence(shown)
    assert list(shown.panels()) == list(GROUPS)


EXAMPLES = [(name, each) for name in ("en-de", "en-pt") for each in examples.examples(models.find(name))]


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=lambda each: getattr(each, "label", each))
def test_every_example_has_a_second_sentence_that_differs_in_one_word(name: str, example: examples.Example):
    directory = ROOT / "assets" / "models" / name
    if not (directory / "model.safetensors").exists():
        pytest.skip("the bundled model is not here")
    from transformer import load_translator

    model = load_translator(directory)
    assert changed_positions(model, example.text, example.other)


def test_percentages_say_less_than_nothing_and_more_than_everything():
    assert [percent_of(share) for share in (-0.034, 0.5, 1.04)] == ["−3\u00a0%", "50\u00a0%", "104\u00a0%"]
