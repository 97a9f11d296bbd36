"""The check before and after: other sentences, answers noted and not told, and the score in the file."""

import json

import pytest
from app_pages import run, words
from streamlit.testing.v1 import AppTest

from explorer.app.controls.text import plain
from explorer.app.server import examples, models
from explorer.app.server.lessons import asking, files
from explorer.app.server.lessons.files import CHECKS

MODELS = ("en-pt", "en-de")


def options(at: AppTest) -> list:
    return [each for each in at.button if str(each.key).startswith("lesson.option.")]


@pytest.mark.parametrize("model", MODELS)
def test_the_two_checks_ask_about_other_sentences_and_always_ask(model: str):
    texts: dict[str, set[str]] = {}
    for name, lesson in files.checks().items():
        chosen = [asking.of_check(models.find(model), lesson, step) for step in lesson.steps]
        texts[name] = {each["text"] for each in chosen}
        assert chosen == [asking.of_check(models.find(model), lesson, step) for step in lesson.steps]
        for step in lesson.steps:
            at = run(
                step.page, **{**step.params, "lesson": f"{name}.{lesson.steps.index(step) + 1}"}, model=model
            )
            assert options(at), (name, step.question)
    assert not texts["before"] & texts["after"]
    assert texts["before"] | texts["after"] <= {*examples.offered(models.find(model)).values()}


@pytest.mark.parametrize("name", CHECKS)
def test_an_answer_is_noted_and_not_told(name: str):
    step = files.checks()[name].steps[0]
    at = run(step.page, model="en-pt", lesson=f"{name}.1", text="A sentence of my own.", step="1")
    said = set()
    for i in range(len(options(at))):
        options(at)[i].click().run()
        assert at.session_state["visit"].silent
        assert "Measured" not in words(at)
        assert "Right" not in words(at)
        assert "Noted." in words(at)
        said.add(words(at).partition("Noted.")[2])
        note = at.session_state["visit"].lesson_notes[name][0]
        assert plain(note["chose"]) == options(at)[i].label
        assert note["sentence"] in examples.offered(models.find("en-pt")).values()
    assert len(said) == 1


def test_the_score_comes_when_all_was_seen_and_then_no_answer_changes():
    step = files.checks()["before"].steps[0]
    note = {"sentence": "A", "model": "m", "asked": "Q?", "chose": "x", "right": True, "reason": "R."}
    at = run("pages/lessons.py")
    at.session_state["visit"].lesson_notes = {"before": dict.fromkeys(range(1, 7), note)}
    assert "6 of 8 steps seen" in words(at.run())
    assert "answers right" not in words(at)
    assert "of 8 right" not in words(at)
    at = run(step.page, model="en-pt", lesson="before.1")
    at.session_state["visit"].lesson_notes |= {"before": dict.fromkeys(range(1, 8), note)}
    options(at)[0].click().run()
    assert [each.disabled for each in options(at)] == [True] * len(options(at))
    assert "which you got right" in words(at)


def test_the_page_lists_the_checks_and_says_both_scores():
    at = run("pages/lessons.py")
    labels = [each.proto.label for each in at.get("page_link")]
    assert labels.index(plain("Check: before")) < labels.index(plain("1. What a map is"))
    assert labels.index(plain("6. Positions")) + 1 == labels.index(plain("Check: after"))
    note = {"sentence": "A", "model": "m", "asked": "Q?", "chose": "x", "reason": "R."}
    at.session_state["visit"].lesson_notes = {
        name: {i: {**note, "right": i < right} for i in range(8)}
        for name, right in zip(CHECKS, (4, 7), strict=True)
    }
    told = words(at.run()).replace("\\", "")
    assert told.count("before 4 → after 7 of 8 right") == 2
    wrong = [told.count(f"Step {i} was not right: Q? You chose x.") for i in range(1, 9)]
    assert wrong == [0, 0, 0, 0, 1, 1, 1, 2]
    assert "Step 8 was not answered" not in told
    at.session_state["visit"].lesson_notes = {
        "after": {i: {**note, "right": True} for i in range(7)} | {7: None}
    }
    assert "Step 8 was not answered" in words(at.run())


def test_the_check_before_is_offered_until_a_lesson_is_begun():
    at = run("pages/lessons.py")

    def offered() -> bool:
        return any("check what you know" in each.proto.label for each in at.get("page_link"))

    assert offered()
    at.session_state["visit"].lesson_notes = {"map": {0: None}}
    at.run()
    assert not offered()


def test_a_class_is_shown_from_its_files_and_damaged_ones_are_named():
    at = run("pages/lessons.py")
    uploader = next(each for each in at.file_uploader if each.label == "Files of progress (JSON)")
    steps = [{"step": 1}, {"step": 2, "sentence": "A", "model": "m", "asked": "Q?", "chose": "x"}]
    steps[1] |= {"right": False, "reason": "R."}  # type: ignore[dict-item]
    good = json.dumps({"name": "Ana", "lessons": {"map": steps}}).encode()
    uploader.set_value([("a.json", good, "application/json"), ("b.json", b"{", "application/json")]).run()
    assert not at.exception
    shown = at.dataframe[0].value
    assert list(shown["name"]) == ["Ana"]
    assert "step 2 of “What a map is”, by 1 of 1" in words(at).replace("\\", "")
    assert "b.json: this file holds no progress" in words(at).replace("\\", "")
