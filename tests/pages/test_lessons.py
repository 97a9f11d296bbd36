"""Lessons on the pages that they show: every step opens, its question is asked, and links keep the place."""

import json
import os
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from app_pages import SENTENCE, run, said, words
from nightly import thinned
from streamlit.testing.v1 import AppTest

from explorer.app.controls.text import plain
from explorer.app.server.lessons import files

SHIPPED, _ = files.every()
STEPS = [(name, i) for name, lesson in SHIPPED.items() for i in range(len(lesson.steps))]


def step(name: str, at: int, **params: str) -> AppTest:
    """Opens a step of a lesson."""
    view = SHIPPED[name].steps[at]
    return run(view.page, **{**view.params, "lesson": f"{name}.{at + 1}", "model": "random", **params})


def options(at: AppTest) -> list:
    return [each for each in at.button if str(each.key).startswith("lesson.option.")]


def follow(at: AppTest, label: str) -> AppTest:
    """Clicks a link, as Streamlit does: its page with the query that the server sent with it."""
    link = next(each.proto for each in at.get("page_link") if each.proto.label == label)
    at.query_params.clear()
    at.query_params.update(parse_qsl(link.query_string))
    page = f"pages/{link.page}.py" if link.page else "app.py"
    return at.switch_page(page).run()


@pytest.mark.parametrize(("name", "i"), thinned(STEPS, 3))
def test_every_step_opens_its_page_with_a_picture(name: str, i: int):
    view = SHIPPED[name].steps[i]
    bundled = view.page == "pages/heads.py"
    given = {"model": "en-pt", "text": "He is old."} if bundled else {"text": "one two three"}
    at = step(name, i, **given)
    assert not at.error
    assert view.text in words(at)
    assert f"step {i + 1} of {len(SHIPPED[name].steps)}" in words(at)
    shown = [*at.get("plotly_chart"), *at.get("bidi_component"), *at.get("dataframe")]
    assert len(shown) > 1 or (at.info and view.page == "pages/heads.py")
    if view.question is not None and view.question.quantity == "build":
        assert "every query is graded" in words(at) or "Nothing is asked here" in words(at)
    elif view.question is not None:
        assert options(at) or "too close to ask" in words(at) or "Nothing is asked here" in words(at)


def test_a_choice_is_answered_with_its_numbers_and_noted():
    at = step("map", 1)
    asked = [each.label for each in options(at)]
    assert len(asked) > 1
    right = 0
    for i in range(len(asked)):
        options(at)[i].click().run()
        assert ("**Right.**" in words(at)) != ("**Not so.**" in words(at))
        assert "Measured:" in words(at)
        right += "**Right.**" in words(at)
    assert right == 1
    note = at.session_state["lesson_notes"]["map"][1]
    assert note["right"] == ("**Right.**" in words(at))
    assert note["sentence"] == SENTENCE


def test_another_row_is_another_question():
    at = step("map", 1, step="1")
    options(at)[0].click().run()
    assert "Measured:" in words(at)
    at = step("map", 1, step="2")
    assert "Measured:" not in words(at)


def test_next_and_back_keep_the_sentence_the_cursor_and_the_heads():
    at = step("map", 1, text="one two three", step="2", cross="2.1", view="alignment", scale="sqrt")
    at = follow(follow(at, "Next"), "Next")
    kept = {name: at.query_params[name] for name in ("text", "step", "cross", "model")}
    assert kept == {"text": "one two three", "step": "2", "cross": "2.1", "model": "random"}
    assert at.query_params["lesson"] == "map.4"
    assert "view" not in at.query_params
    assert "scale" not in at.query_params
    at = follow(at, "Back")
    assert at.query_params["lesson"] == "map.3"


def test_a_step_shows_its_own_view_and_leaves_changes_out():
    at = step("masks", 1, step="2", changes="ablate_cross_1_1")
    at = follow(at, "Next")
    assert at.query_params.get("step") != "2"
    assert at.query_params["mask"] == "zero"
    assert "changes" not in at.query_params


def test_a_lesson_can_be_left_and_the_page_goes_on_after_it():
    at = step("map", 0)
    next(each for each in at.button if each.key == "lesson-leave").click().run()
    assert "lesson" not in at.query_params
    assert at.session_state["silent"] is None
    assert "Leave the lesson" not in [each.label for each in at.button]
    at = at.switch_page("pages/lessons.py").run()
    go_on = next(each.proto for each in at.get("page_link") if each.proto.label.startswith("Continue"))
    assert "lesson=map.2" in go_on.query_string


def test_the_page_lists_all_lessons_and_goes_on_where_one_is():
    at = run("pages/lessons.py", lesson="masks.3")
    labels = [each.proto.label for each in at.get("page_link")]
    assert plain("Continue: Masks, step 3 of 8") in labels
    titles = [plain(f"{i}. {lesson.title}") for i, lesson in enumerate(SHIPPED.values(), start=1)]
    assert [label for label in labels if label in titles] == titles
    assert words(at).count("· first hour") == 6


def test_after_its_last_step_a_lesson_of_the_first_hour_leads_to_the_next_of_that_hour():
    for name, following in (("heads", "stacks"), ("stacks", "decoding")):
        at = step(name, len(SHIPPED[name].steps) - 1)
        links = [each.proto for each in at.get("page_link") if each.proto.label == "Next lesson"]
        assert [f"lesson={following}.1" in each.query_string for each in links] == [True]


def test_an_own_lesson_cannot_bring_code_or_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hostile = "<script>alert(1)</script> ![x](https://example.org/x.png) <b>bold</b>"
    lesson = {
        "title": hostile[:40],
        "minutes": 5,
        "purpose": hostile,
        "steps": [{"text": hostile, "view": ""}],
    }
    (tmp_path / "mine.json").write_text(json.dumps(lesson))
    monkeypatch.setenv(files.FOLDER, str(tmp_path))
    at = run(lesson="mine.1")
    shown = [each for each in at.markdown if "example.org" in each.value]
    assert shown
    assert not any(each.allow_html or "![" in each.value for each in shown)
    assert not run("pages/lessons.py").exception


def test_bad_lessons_are_named_in_the_list_and_the_others_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    good = {"title": "Mine", "minutes": 5, "purpose": "Look.", "steps": [{"text": "Look.", "view": ""}]}
    bad = {
        "address.json": {**good, "steps": [{"text": "Look.", "view": "//[x"}]},
        "half.json": {**good, "title": "\ud800"},
        os.fsdecode(b"\xff.json"): good,
    }
    (tmp_path / "bad.json").write_text("{")
    for name, lesson in {"good.json": good, **bad}.items():
        (tmp_path / name).write_text(json.dumps(lesson))
    monkeypatch.setenv(files.FOLDER, str(tmp_path))
    at = run("pages/lessons.py")
    warned = [each.value for each in at.warning]
    assert len(warned) == 4
    assert plain("bad.json, line 1: this is not JSON in UTF-8.") in warned
    assert all(
        any(plain(name) in each for each in warned) for name in ("address.json", "half.json", "�.json")
    )
    assert f"{len(SHIPPED) + 1}. Mine" in [each.proto.label.replace("\\", "") for each in at.get("page_link")]
    assert "Look." in words(run(lesson="good.1"))
    assert "is not here" in said(run(lesson="half.1"))
    assert SHIPPED["masks"].steps[2].text in words(run(lesson="masks.3"))
