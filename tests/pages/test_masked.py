"""Texts with masked words, on the pages: what stands in the place of each, a word masked by a click,
another one put there, and what it costs."""

import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from app_pages import charts, feeds, run, said, view, words, write_encoder

from explorer.app.address.state import State
from explorer.app.maps import filling, wall
from explorer.app.maps.run_export import trace_file
from explorer.app.sections.training import surprisal
from explorer.app.server import models
from explorer.app.server.run_key import RunKey
from explorer.app.server.runs import translate
from explorer.app.server.view import View
from explorer.figures.base.bars import shown_candidates
from explorer.figures.base.tasks import WORDS
from explorer.lenses.measures.effect import head_effects
from transformer import Translator, load_encoder
from transformer.text.words import is_special, readable

TEXT = "The [MASK] is old."
PLAIN = "The cat is old."
opened = partial(run, model="encoder/filler", text=TEXT)


@pytest.fixture(autouse=True)
def encoders(own_models: Path) -> None:
    """An encoder that predicts masked words, and one that only reads, among the models."""
    write_encoder(own_models / "encoder" / "filler", fills=True)
    write_encoder(own_models / "encoder" / "reader", fills=False)


@pytest.fixture
def model(own_models: Path, encoders: None) -> Translator:
    return load_encoder(own_models / "encoder" / "filler")


def view_of(text: str, name: str = "encoder/filler") -> View:
    run_key = RunKey.of(State(model=name), models.find(name), text)
    return View(run_key, translate(run_key, whole=True), None)


def test_every_word_has_its_candidates_and_a_mask_is_free(model: Translator) -> None:
    at = opened()
    run_ = model.fill(TEXT)
    (masked,) = run_.fills
    told = feeds(at)["next"]
    assert (told["follows"], told["puts"]) == ("source", "put it in its place")
    assert view(at)["strips"] == ["source"]
    assert (view(at)["cursor"], view(at)["source"]) == ("source", masked)
    assert run_.predict is not None
    for place, piece in enumerate(run_.source_tokens):
        ids = told["ids"][place]
        if place != masked and is_special(piece):
            assert ids == []
            continue
        fill = run_.fills[masked] if place == masked else run_.predict([place])[place]
        shown = shown_candidates(fill)
        allowed = [one.token_id if filling.can_be_typed(one.token) else None for one in shown]
        assert ids == allowed
        chosen = [one.token_id for one in shown].index(fill.token_id)
        assert told["chosen"][place] == (-1 if place == masked else chosen)


def test_a_word_is_masked_and_put_back(model: Translator) -> None:
    whole = view_of(PLAIN)
    tokens = whole.translation.source_tokens
    place = tokens.index("▁old")
    word = filling.word_at(whole, place)
    assert word is not None
    assert len(word.indices) == 1
    moves = filling.mask_word(whole, place)
    mask = str(model.pieces([model.config.mask_id or 0], "source")[0])
    assert moves["text"].count(mask) == len(word.indices)
    assert moves["source"] == word.start
    again = view_of(str(moves["text"]))
    assert again.translation.source_tokens[: word.start] == tokens[: word.start]
    assert again.translation.source_tokens[word.stop :] == tokens[word.stop :]
    assert [*again.translation.fills] == [*word.indices]
    own = model.ids_of(whole.translation)["encoder"][place]
    assert filling.fill_word(again, place, own)["text"] == PLAIN
    last = tokens.index(".")
    ending = model.token_id("s", "source")
    assert filling.fill_word(whole, last, ending)["text"] == "The cat is olds"
    assert filling.word_at(whole, 0) is None


def test_the_button_masks_the_word_of_the_cursor() -> None:
    at = opened(text=PLAIN, source="2")
    button = at.button("mask-word")
    assert button.label.startswith("Mask “The")
    button.click().run()
    assert not at.exception
    assert "<mask>" in at.session_state["state"].text
    assert at.session_state["state"].source == 1
    assert opened(source="1").button("mask-word").disabled


def test_what_only_a_writer_needs_is_left_out() -> None:
    at = opened(decode="beam-3", target="one two")
    assert not said(at)
    run_ = view_of(TEXT).translation
    assert (run_.method, run_.steps) == ("read", ())
    assert [each.label for each in at.button if each.label == "Read"] == ["Read"]
    assert not [each for each in at.selectbox if each.label == "Decoding"]


def test_an_explanation_is_of_the_masked_word_or_offers_to_mask_one() -> None:
    at = run("pages/explanation.py", model="encoder/filler", text=TEXT, view="why")
    (fill,) = view_of(TEXT).translation.fills.values()
    assert "rests on" in words(at)
    assert readable(fill.token) in words(at)
    assert "On the direct path" in words(at)
    at = run("pages/explanation.py", model="encoder/filler", text=PLAIN, source="2")
    assert "no word is masked here" in said(at)
    assert at.button("mask-word")
    at = run("pages/explanation.py", model="encoder/reader", text=PLAIN)
    assert "this run predicts none" in said(at)


def test_each_word_costs_what_it_costs_with_it_alone_masked(model: Translator) -> None:
    page = "pages/training.py"
    at = run(page, model="encoder/filler", text=PLAIN, view="surprisal")
    run_ = model.fill(PLAIN)
    ordinary = [i for i, piece in enumerate(run_.source_tokens) if not is_special(piece)]
    assert run_.predict is not None
    costs = {i: -fill.log_prob / math.log(2) for i, fill in run_.predict(ordinary).items()}
    table = at.dataframe[0].value
    np.testing.assert_allclose(table["bits"], [costs[i] for i in ordinary], atol=1e-4)
    total = sum(costs.values())
    assert f"**{total:.1f} bits** in all" in words(at)
    by_word = at.dataframe[-1].value
    assert [*by_word["word"]] == PLAIN.split()
    assert by_word["given all others"].sum() == pytest.approx(total, abs=1e-3)
    assert by_word["given those before"].gt(0).all()
    at = run(page, model="encoder/reader", text=PLAIN, view="surprisal")
    assert "predicts no words" in said(at)


def test_a_mask_costs_nothing_and_is_free() -> None:
    of_text = surprisal.costs(view_of(TEXT))
    (masked,) = view_of(TEXT).translation.fills
    assert of_text.steps[masked] is None
    assert of_text.bits[masked] == 0.0
    feed = surprisal.race(view_of(TEXT), of_text)
    assert feed["chosen"][masked] == -1
    assert feed["names"][masked]


@pytest.mark.parametrize("text", [TEXT, PLAIN])
def test_what_a_change_did_is_told_of_the_masks(text: str) -> None:
    at = run("pages/what_if.py", model="encoder/filler", text=text, changes="ablate_encoder_1_1")
    assert not at.exception
    assert not said(at)
    assert charts(at)
    if text == TEXT:
        assert re.search(r"The word at mask 1", words(at))
        assert "as it is" in words(at)
    else:
        assert "No word is predicted here" in words(at)


def test_a_saved_run_opens_without_its_model_with_its_candidates(model: Translator) -> None:
    run_ = model.fill(TEXT)
    at = run("pages/open_file.py")
    at.file_uploader[0].set_value(
        ("run.npz", trace_file(run_, None), "application/octet-stream")
    ).run()
    assert not at.error
    assert not at.exception
    at.switch_page("app.py").run()
    assert not at.exception
    (masked,) = run_.fills
    told = feeds(at)["next"]
    assert told["names"][masked]
    assert told["ids"] == () or told["ids"] == []
    assert not [each for each in at.button if each.key == "mask-word"]
    name = next(iter(at.session_state["visit"].files))
    for typed in (TEXT, run_.source_text):
        assert not run(files={name: run_}, model=name, text=typed).error
    assert run(files={name: run_}, model=name, text=PLAIN).error


MANY = "The cat is <mask> and the dog is <mask>."


def test_a_change_of_the_text_is_told_at_the_masks_of_both() -> None:
    base = view_of(MANY)
    first = next(iter(base.translation.fills))
    page = "pages/what_if.py"
    at = run(page, model="encoder/filler", text=MANY, changes=f"edit_{first + 1}_70")
    assert not at.exception
    assert not at.error
    assert "compared with nothing: 1 mask." in words(at)
    assert "The output stays the same" not in words(at)
    table = at.table[0].value
    assert len(table)
    at = run(page, model="encoder/filler", text=MANY, changes="ablate_encoder_1_1")
    assert re.search(r"at every mask|is the most probable at \d of 2 masks", words(at))


def test_an_encoder_is_compared_with_its_untrained_twin_and_with_no_output() -> None:
    page = "pages/what_if.py"
    at = run(page, model="encoder/filler", text=TEXT, view="compare", against="untrained-1")
    assert not at.exception
    assert not said(at)
    ways = next(each for each in at.selectbox if each.label == "Compare with")
    assert not [each for each in ways.options if "output of your own" in each]
    at = run(page, model="encoder/filler", text=TEXT, view="compare", against="forced")
    assert not at.exception
    assert "writes no output" in said(at)


def test_a_wall_is_sorted_by_what_each_head_does_for_the_masked_word(
    own_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wall, "MANY", 1)
    page = "pages/encoder_self_attention.py"
    at = run(page, model="encoder/filler", text=TEXT, sort="effect")
    assert not at.exception
    made = view_of(TEXT)
    (masked,) = made.translation.fills
    effects = head_effects(
        load_encoder(own_models / "encoder" / "filler"), made.translation, "encoder", masked
    )
    order = [tuple(head) for group in feeds(at)["ranking"]["groups"] for head in group["heads"]]
    assert order == sorted(np.ndindex(effects.shape), key=lambda head: effects[head])


def test_a_language_model_stands_beside_texts_without_masks_only() -> None:
    page = "pages/training.py"
    masked = run(page, model="encoder/filler", text=MANY, view="surprisal")
    assert not masked.exception
    assert "Beside a language model" not in words(masked)


def test_an_encoder_without_a_mask_reads_and_says_no_more() -> None:
    at = run("app.py", model="encoder/reader", text=PLAIN)
    headings = " ".join(each.proto.body for each in at.get("html"))
    assert WORDS["read"].purpose in headings
    assert "[MASK]" not in "".join(each.placeholder for each in at.text_input)


@pytest.mark.parametrize(
    ("name", "line"), [("filler", "[MASK] for a hidden word"), ("reader", "a")]
)
def test_an_encoder_s_own_file_is_said_to_be_read_and_not_translated(name: str, line: str) -> None:
    at = run("pages/heads.py", model=f"encoder/{name}")
    told = " ".join(each.value for each in at.caption)
    assert "The model reads each sentence as it is." in told
    assert "translat" not in told + at.file_uploader[0].label
    assert line in at.file_uploader[0].label
    at.file_uploader[0].set_value(("mine.txt", b"one\ttwo", "text/plain")).run()
    assert "writes no output" in " ".join(each.value for each in (*at.info, *at.error, *at.caption))
