"""The app with a model of Firefox, whose decoder has a recurrent unit in place of self-attention."""

from __future__ import annotations

import json
from functools import partial

import pytest
from app_pages import LINKED, PAGES, feeds, run, view
from firefox_files import random_model, write_firefox
from streamlit.testing.v1 import AppTest


@pytest.fixture(autouse=True)
def firefox(own_models):
    write_firefox(own_models / "enpt", random_model())


opened = partial(run, model="enpt", text="the old house")


def said(page: AppTest) -> str:
    texts = [*page.markdown, *page.caption, *page.info]
    return "\n".join(text.value for text in texts).replace("\\", "")


@pytest.mark.parametrize("path", PAGES)
def test_every_page_opens_or_says_in_a_sentence_what_the_model_lacks(path):
    page = opened(path)
    assert not page.exception
    assert not page.error
    if path in {*LINKED, "pages/beam_search.py"} - {"pages/decoder_self_attention.py"}:
        assert {*view(page)["plots"]} <= {*feeds(page)}
    if "does not have" in (told := said(page)):
        assert "This part shows masked decoder self-attention, which enpt does not have" in told


@pytest.mark.parametrize("place", ["compare", "masks", "training", "what_if"])
def test_an_address_that_asks_for_the_missing_kind_opens_all_the_same(place):
    page = opened(f"pages/{place}.py", kind="decoder", changes="dropsublayer_decoder.1.unit")
    assert not page.exception
    assert not page.error


def test_the_decoder_s_page_shows_what_its_state_remembers():
    page = opened("pages/decoder_self_attention.py", step="2", decoder="2.1")
    assert "This model has no decoder self-attention" in said(page)
    assert "Memory of the recurrent unit · layer 2 · mean over dimensions · enpt · ✓ from a ver" in said(page)
    (figure,) = [json.loads(each.proto.spec) for each in page.get("plotly_chart")]
    cells = figure["data"][0]
    assert cells["type"] == "heatmap"
    assert not any("as trained" in str(switch.options) for switch in page.button_group)


def test_a_single_dimension_can_be_chosen_and_one_beyond_the_last_is_the_last():
    page = opened("pages/decoder_self_attention.py", dimension="900")
    assert "layer 1 · dimension 16 · enpt" in said(page)


def test_anatomy_draws_the_unit_with_its_gate_and_state():
    page = opened("pages/whole_model.py", part="decoder-recurrence", layer="2", step="2")
    assert not page.exception
    assert "Decoder: recurrent unit, layer 2" in said(page)
    assert "reads “" in said(page)
    assert "Decoder: recurrent unit, layer 2 · step 2 · vectors, each on its own scale · enpt" in said(page)
    drawn = " ".join(each.proto.spec for each in page.get("plotly_chart"))
    assert all(name in drawn for name in ("gate f", "= state c", "recurrent unit", "cross-attention"))
    assert "masked self-attention<" not in drawn


@pytest.mark.parametrize("part", ["decoder-recurrence-norm", "decoder-recurrence-add", "decoder-attention"])
def test_the_parts_around_the_unit_open_and_one_that_is_not_there_is_named(part):
    page = opened("pages/whole_model.py", part=part)
    assert not page.exception
    assert ("This model has no part" in said(page)) == (part == "decoder-attention")
