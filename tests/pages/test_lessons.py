"""Lessons on the pages that they show: steps, questions, links, own lessons, and both checks."""

import json
import os
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from app_pages import SENTENCE, run, said, words
from nightly import thinned
from streamlit.testing.v1 import AppTest

from explorer.app.controls.text import plain
from explorer.app.lessons import asking, files
from explorer.app.lessons.files import CHECKS
from explorer.app.lessons.progress import Note
from explorer.app.server import examples, models
from explorer.app.shell import strip

SHIPPED, _ = files.every()
STEPS = [(name, i) for name, lesson in SHIPPED.items() for i in range(len(lesson.steps))]


def step(name: str, at: int, **params: str) -> AppTest:
    """Opens a step of a lesson."""
    view = SHIPPED[name].steps[at]
    model = "random"
    if "language-model" in SHIPPED[name].needs:
        model = params["model"] = "language/lm-en"
    return run(view.page, **{**view.params, "lesson": f"{name}.{at + 1}", "model": model, **params})


def options(at: AppTest) -> list:
    return [each for each in at.button if str(each.key).startswith("lesson.option.")]


def labels(at: AppTest) -> list[str]:
    return [each.proto.label for each in at.get("page_link")]


def follow(at: AppTest, label: str) -> AppTest:
    """Clicks a link, as Streamlit does: its page with the query that the server sent with it."""
    link = next(each.proto for each in at.get("page_link") if each.proto.label == label)
    at.query_params.clear()
    at.query_params.update(parse_qsl(link.query_string))
    page = f"pages/{link.page}.py" if link.page else "app.py"
    return at.switch_page(page).run()


def test_a_step_offers_its_view_once_a_value_that_its_page_alone_reads_is_another():
    name, i = next((name, i) for name, i in STEPS if "section" in SHIPPED[name].steps[i].params)
    section = SHIPPED[name].steps[i].params["section"]
    elsewhere = "sum" if section != "sum" else "weights"
    offers = [
        "This step’s view" in labels(step(name, i, section=at)) for at in (section, elsewhere)
    ]
    assert offers == [False, True]


@pytest.mark.parametrize(
    ("model", "number", "name"),
    [
        ("en-pt", 1, "map"),
        ("language/lm-en", 13, "induction"),
        ("encoder/masked-en", 1, "map"),  # none is about an encoder alone
    ],
)
def test_the_home_page_leads_to_the_first_lesson_that_its_model_can_take(
    model: str, number: int, name: str
):
    at = run(model=model)
    start = next(each.proto for each in at.get("page_link") if "Start here" in each.proto.label)
    assert plain(start.label).endswith(f"then lesson {number}")
    assert f"lesson={name}.1" in start.query_string


@pytest.mark.parametrize(
    ("name", "model", "other"),
    [
        ("map", "encoder/masked-en", "English → Portuguese"),
        ("masks", "language/lm-en", "English → Portuguese"),
        ("induction", "encoder/masked-en", "English language model"),
        ("induction", "en-pt", "English language model"),
    ],
)
def test_a_lesson_that_a_model_cannot_take_is_taken_with_one_that_can(
    name: str, model: str, other: str
):
    at = run(SHIPPED[name].steps[1].page, lesson=f"{name}.2", model=model)
    assert not options(at)
    taken = follow(at, plain(f"Take this lesson with {other}"))
    assert not any("Take this lesson" in label for label in labels(taken))
    assert options(taken)
    assert taken.session_state["state"].lesson == (name, 1)


@pytest.mark.parametrize(("name", "i"), thinned(STEPS, 3))
def test_every_step_opens_its_page_with_a_picture(name: str, i: int):
    view = SHIPPED[name].steps[i]
    bundled = view.page == "pages/heads.py"
    at = step(
        name,
        i,
        **({"model": "en-pt", "text": "He is old."} if bundled else {"text": "one two three"}),
    )
    assert not at.error
    assert view.text in words(at)
    assert f"step {i + 1} of {len(SHIPPED[name].steps)}" in words(at)
    shown = [*at.get("plotly_chart"), *at.get("bidi_component"), *at.get("dataframe")]
    assert len(shown) > 1 or (at.info and bundled)
    if view.question is not None and view.question.quantity == "build":
        assert "every query is graded" in words(at) or "Nothing is asked here" in words(at)
    elif view.question is not None:
        assert (
            options(at) or "too close to ask" in words(at) or "Nothing is asked here" in words(at)
        )


def test_a_choice_is_answered_with_its_numbers_and_noted_and_another_row_is_another_question():
    at = step("map", 1)
    right = 0
    for i in range(len(options(at))):
        options(at)[i].click().run()
        assert ("**Right.**" in words(at)) != ("**Not so.**" in words(at))
        assert "Measured:" in words(at)
        right += "**Right.**" in words(at)
    assert (i > 0, right) == (True, 1)
    note = at.session_state["visit"].lesson_notes["map"][1]
    assert note.right == ("**Right.**" in words(at))
    assert note.sentence == SENTENCE
    at.query_params["step"] = "3"
    at.run()
    assert "Measured:" not in words(at)


def test_next_and_back_keep_the_sentence_the_cursor_and_the_heads():
    at = step("map", 1, text="one two three", step="2", cross="2.1", view="alignment", scale="sqrt")
    at = follow(follow(at, "Next"), "Next")
    kept = {name: at.query_params[name] for name in ("text", "step", "cross", "model", "lesson")}
    assert kept == {
        "text": "one two three",
        "step": "2",
        "cross": "2.1",
        "model": "random",
        "lesson": "map.4",
    }
    assert not {"view", "scale"} & set(at.query_params)
    assert follow(at, "Back").query_params["lesson"] == "map.3"
    at = follow(step("masks", 1, step="2", changes="ablate_cross_1_1"), "Next")
    assert at.query_params.get("step") != "2", "a step shows its own view and leaves changes out"
    assert at.query_params["mask"] == "zero"
    assert "changes" not in at.query_params


def test_a_lesson_can_be_left_and_the_list_goes_on_after_it():
    at = step("map", 0)
    next(each for each in at.button if each.key == "lesson-leave").click().run()
    assert "lesson" not in at.query_params
    assert at.session_state["visit"].silent is None
    assert "Leave the lesson" not in [each.label for each in at.button]
    at = at.switch_page("pages/lessons.py").run()
    go_on = next(
        each.proto for each in at.get("page_link") if each.proto.label.startswith("Continue")
    )
    assert "lesson=map.2" in go_on.query_string
    assert "1 of 8 steps seen" in words(at)
    at = run("pages/lessons.py", lesson="masks.3")
    assert plain("Continue: Masks, step 3 of 8") in labels(at)
    for name, following in (("heads", "stacks"), ("stacks", "decoding")):  # within the first hour
        at = step(name, len(SHIPPED[name].steps) - 1)
        links = [each.proto for each in at.get("page_link") if each.proto.label == "Next lesson"]
        assert [f"lesson={following}.1" in link.query_string for link in links] == [True]


def test_an_own_lesson_cannot_bring_code_or_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    hostile = "<script>alert(1)</script> ![x](https://example.org/x.png) <b>bold</b>"
    lesson = {
        "title": hostile[:40],
        "minutes": 5,
        "purpose": hostile,
        "steps": [{"text": hostile, "view": ""}],
    }
    (tmp_path / "mine.json").write_text(json.dumps(lesson))
    monkeypatch.setenv(files.FOLDER, str(tmp_path))
    shown = [each for each in run(lesson="mine.1").markdown if "example.org" in each.value]
    assert shown
    assert not any(each.allow_html or "![" in each.value for each in shown)
    run("pages/lessons.py")


def test_bad_lessons_are_named_in_the_list_and_the_others_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    good = {
        "title": "Mine",
        "minutes": 5,
        "purpose": "Look.",
        "steps": [{"text": "Look.", "view": ""}],
    }
    written = {
        "good.json": good,
        "address.json": {**good, "steps": [{"text": "Look.", "view": "//[x"}]},
        "half.json": {**good, "title": "\ud800"},
        os.fsdecode(b"\xff.json"): good,
    }
    (tmp_path / "bad.json").write_text("{")
    for name, lesson in written.items():
        (tmp_path / name).write_text(json.dumps(lesson))
    monkeypatch.setenv(files.FOLDER, str(tmp_path))
    at = run("pages/lessons.py")
    warned = [each.value for each in at.warning]
    assert len(warned) == 4
    assert plain("bad.json: this is not JSON in UTF-8.") in warned
    for name in ("address.json", "half.json", "�.json"):
        assert any(plain(name) in each for each in warned), name
    assert f"{len(SHIPPED) + 1}. Mine" in [label.replace("\\", "") for label in labels(at)]
    assert "Look." in words(run(lesson="good.1"))
    assert "is not here" in said(run(lesson="half.1"))
    assert SHIPPED["masks"].steps[2].text in words(run(lesson="masks.3"))


# --- the check before and after: other sentences, answers noted and not told, and the score ------


@pytest.mark.parametrize("model", ["en-pt", "en-de"])
def test_the_two_checks_ask_about_other_sentences_and_always_ask(model: str):
    texts: dict[str, set[str]] = {}
    for name, lesson in files.checks().items():
        chosen = [asking.of_check(models.find(model), lesson, step) for step in lesson.steps]
        texts[name] = {each["text"] for each in chosen}
        assert chosen == [
            asking.of_check(models.find(model), lesson, step) for step in lesson.steps
        ]
        for i, step in enumerate(lesson.steps, start=1):
            at = run(step.page, **{**step.params, "lesson": f"{name}.{i}"}, model=model)
            assert options(at), (name, step.question)
    assert not texts["before"] & texts["after"]
    assert texts["before"] | texts["after"] <= {*examples.offered(models.find(model)).values()}


@pytest.mark.parametrize("name", CHECKS)
def test_an_answer_is_noted_and_not_told(name: str):
    page = files.checks()[name].steps[0].page
    at = run(page, model="en-pt", lesson=f"{name}.1", text="A sentence of my own.", step="1")
    told = set()
    for i in range(len(options(at))):
        options(at)[i].click().run()
        assert at.session_state["visit"].silent
        assert [each in words(at) for each in ("Measured", "Right", "Noted.")] == [
            False,
            False,
            True,
        ]
        told.add(words(at).partition("Noted.")[2])
        note = at.session_state["visit"].lesson_notes[name][0]
        assert plain(note.chose) == options(at)[i].label
        assert note.sentence in examples.offered(models.find("en-pt")).values()
    assert len(told) == 1


NOTE = {"sentence": "A", "model": "m", "asked": "Q?", "chose": "x", "reason": "R."}
RIGHT, WRONG = (Note(**NOTE, right=right) for right in (True, False))


def test_the_score_comes_when_all_was_seen_and_then_no_answer_changes():
    at = run("pages/lessons.py")
    assert any("check what you know" in label for label in labels(at)), (
        "offered until a lesson is begun"
    )
    at.session_state["visit"].lesson_notes = {"map": {0: None}}
    assert not any("check what you know" in each for each in labels(at.run()))
    at.session_state["visit"].lesson_notes = {"before": dict.fromkeys(range(1, 7), RIGHT)}
    assert "6 of 8 steps seen" in words(at.run())
    assert "answers right" not in words(at)
    assert "of 8 right" not in words(at)
    at = run(files.checks()["before"].steps[0].page, model="en-pt", lesson="before.1")
    at.session_state["visit"].lesson_notes |= {"before": dict.fromkeys(range(1, 8), RIGHT)}
    options(at)[0].click().run()
    assert [option.disabled for option in options(at)] == [True] * len(options(at))
    assert "which you got right" in words(at)


def test_the_page_says_both_scores_and_what_was_wrong():
    at = run("pages/lessons.py")
    at.session_state["visit"].lesson_notes = {
        name: {i: RIGHT if i < right else WRONG for i in range(8)}
        for name, right in zip(CHECKS, (4, 7), strict=True)
    }
    told = words(at.run()).replace("\\", "")
    assert told.count("before 4 → after 7 of 8 right") == 2
    wrong = [told.count(f"Step {i} was not right: Q? {NOTE['reason']}") for i in range(1, 9)]
    assert wrong == [0, 0, 0, 0, 1, 1, 1, 2]
    notes = at.session_state["visit"].lesson_notes
    at.session_state["visit"].lesson_notes = {"before": notes["before"]}
    told = words(at.run()).replace("\\", "")
    assert told.count("was not right: Q? You chose x.") == 4
    assert NOTE["reason"] not in told
    assert "Step 8 was not answered" not in told
    at.session_state["visit"].lesson_notes = {"after": dict.fromkeys(range(7), RIGHT) | {7: None}}
    assert "Step 8 was not answered" in words(at.run())


def test_a_class_is_shown_from_its_files_and_damaged_ones_are_named():
    at = run("pages/lessons.py")
    uploader = next(each for each in at.file_uploader if each.label == "Files of progress (JSON)")
    steps = [{"step": 1}, {"step": 2, **NOTE, "right": False}]
    good = json.dumps({"name": "Ana", "lessons": {"map": steps}}).encode()
    uploader.set_value(
        [("a.json", good, "application/json"), ("b.json", b"{", "application/json")]
    ).run()
    assert list(at.dataframe[0].value["name"]) == ["Ana"]
    told = words(at).replace("\\", "")
    assert "step 2 of “What a map is”, by 1 of 1" in told
    assert "b.json: this file holds no progress" in told


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("en-de", (1, None)),
        ("language/lm-en", (13, None)),
        ("encoder/masked-en", (1, "en-pt")),  # with another model
    ],
)
def test_everybody_starts_with_a_lesson_that_can_be_taken(
    name: str, start: tuple[int, str | None]
) -> None:
    first = strip.first(models.find(name))
    assert (first.number, first.model) == start
