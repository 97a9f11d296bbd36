"""A text of several sentences: each is a run, made when it is looked at, on every page."""

import io
import json
import zipfile
from typing import Any

import pytest
from app_pages import click_menu, feeds, run
from sources import named
from streamlit.testing.v1 import AppTest

from explorer.app.address.state import State
from explorer.app.maps.living import living_pages
from explorer.app.server import runs
from explorer.app.server.runs import Progress
from explorer.app.server.view import View
from transformer.hub.settings import HOSTED_VARIABLE

TEXT = "One two. Three four? Five six!"
SENTENCES = ["One two.", "Three four?", "Five six!"]


def paragraph(at: AppTest) -> dict[str, Any] | None:
    told = [json.loads(each.proto.json) for each in at.get("bidi_component") if each.proto.json]
    return next((data[0] for data in told if isinstance(data, list) and "translations" in data[0]), None)


def said_on(at: AppTest) -> str:
    """What the page says, without the signs that escape Markdown."""
    return " ".join(each.value for each in [*at.error, *at.info, *at.caption]).replace("\\", "")


@pytest.mark.parametrize(
    ("sentence", "at", "said"),
    [
        ({}, 0, ""),
        ({"sentence": "2"}, 1, ""),
        ({"sentence": "9"}, 2, "This text has 3 sentences; sentence 3 is shown."),
        ({"sentence": "all"}, -1, ""),
    ],
)
def test_the_address_says_which_sentence_is_shown(sentence: dict[str, str], at: int, said: str) -> None:
    page = run(model="random", text=TEXT, **sentence)
    found = paragraph(page)
    assert found is not None
    assert (found["sentences"], found["at"]) == (SENTENCES, at)
    assert page.text_input[0].value == TEXT
    run_of = runs.request(State(), named("random"), TEXT if at < 0 else SENTENCES[at])
    assert feeds(page)["strips"]["trace"] == run_of.trace
    assert said in said_on(page)
    again = click_menu(page, "pages/cross_attention.py")
    assert feeds(again)["strips"]["trace"] == run_of.trace
    shown = paragraph(again)
    assert shown is not None
    assert (shown["at"], shown["translations"]) == (at, None)


def test_a_page_makes_the_run_of_the_shown_sentence_and_no_other() -> None:
    text = "Ten two. Ten four? Ten six!"
    page = run(model="random", text=text, sentence="2")
    found = paragraph(page)
    assert found is not None
    assert found["translations"][::2] == [None, None]
    asked = runs.request(State(), named("random"), "Ten six!")
    assert runs.text_of(asked) is None
    made = runs.text_of(asked, Progress())
    assert made == runs.translate(asked).text
    assert paragraph(run(model="random", text=text, sentence="2"))["translations"][2] == made  # type: ignore[index]


def test_another_text_begins_at_its_first_sentence_and_one_sentence_has_no_paragraph() -> None:
    page = run(model="random", text=TEXT, sentence="3")
    page.text_input[0].set_value("Two one. Four three.").run()
    assert "sentence" not in page.query_params
    assert paragraph(page)["at"] == 0  # type: ignore[index]
    page.text_input[0].set_value("two one.").run()
    assert paragraph(page) is None


def test_of_more_than_forty_sentences_the_others_stay_in_the_field() -> None:
    text = " ".join(["One two."] * 42)
    page = run(model="random", text=text)
    assert len(paragraph(page)["sentences"]) == 40  # type: ignore[index]
    assert page.text_input[0].value == text
    said = "This text has 42 sentences: the first 40 are translated, the others stay in the field."
    assert said in said_on(page)


@pytest.mark.parametrize(
    ("count", "said"),
    [(29, ""), (30, "This text has 3,029 characters; this server takes at most 3000.")],
)
def test_a_hosted_server_bounds_each_sentence_and_ten_times_as_much(
    count: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOSTED_VARIABLE, "on")
    page = run(model="random", text=" ".join(["One " + "two " * 23 + "two."] * count))
    assert len(page.error) == bool(said)
    assert said in said_on(page)


def test_all_sentences_are_exported_as_living_pages_with_an_index() -> None:
    asked = runs.request(State(), named("random"), SENTENCES[1])
    opened = View(asked, runs.translate(asked), None)
    now = State(sentence=1, step=1, encoder=(0, 0), decoder=(0, 0), cross=(0, 0))
    with zipfile.ZipFile(io.BytesIO(living_pages(opened, now, SENTENCES))) as folder:
        assert sorted(folder.namelist()) == ["1.html", "2.html", "3.html", "index.html"]
        index = folder.read("index.html").decode()
        assert [text for text in SENTENCES if f">{text}</a><br>" in index] == SENTENCES
        assert all(folder.read(f"{i}.html").startswith(b"<!doctype html>") for i in (1, 2, 3))
