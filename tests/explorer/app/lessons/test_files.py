"""Lessons as files, the progress that a student keeps, and a class in one table: what is read and
refused."""

import json
import os
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from properties import PROPERTY, damaged, or_refused

from explorer.app.__main__ import main
from explorer.app.lessons import files, progress
from explorer.app.lessons.files import (
    BUNDLED,
    CHECKS,
    ROOT,
    LessonError,
    checks,
    every,
    find,
    read,
)
from explorer.app.lessons.progress import Note, Table, table
from explorer.app.lessons.questions import QUANTITIES

STEP = {"text": "Look.", "view": "cross_attention?step=2"}
LESSON = {
    "title": "Mine",
    "minutes": 5,
    "purpose": "You can look.",
    "needs": ["cross"],
    "steps": [STEP],
}


def write(path: Path, given: Any) -> Path:
    path.write_text(given if isinstance(given, str) else json.dumps(given, indent=1))
    return path


def test_the_lessons_of_the_first_hour_take_an_hour_and_all_quantities_are_asked_for():
    lessons, wrong = every()
    assert not wrong
    steps = [step for lesson in lessons.values() for step in lesson.steps]
    assert {step.question.quantity for step in steps if step.question} == set(QUANTITIES)
    assert not any("!" in step.text for step in steps)
    hour = [each for each in lessons.values() if each.first_hour]
    assert sum(each.minutes for each in hour) == 60
    for lesson in lessons.values():
        assert 5 <= lesson.minutes <= 15
        assert 5 <= len(lesson.steps) <= 9
        assert any(step.question for step in lesson.steps)


def test_the_checks_ask_the_same_eight_kinds_of_questions():
    before, after = checks().values()
    assert [step.question for step in before.steps] == [each.question for each in after.steps]
    assert len({each.question for each in before.steps if each.question}) == 8
    assert (before.name, find("after")) == (CHECKS[0], after)
    assert not {*CHECKS} & {*every()[0]}


def test_a_path_of_views_is_a_lesson_without_questions(tmp_path: Path):
    """The example of docs/lessons.md."""
    text = (ROOT / "docs" / "lessons.md").read_text().partition("## A path of views")[2]
    path = tmp_path / "friday.json"
    path.write_text(text.partition("```json\n")[2].partition("```")[0])
    assert main(["lesson", "check", str(path)]) == 0
    lesson = read(path)
    assert len(lesson.steps) > 1
    assert not any(step.question for step in lesson.steps)
    assert lesson.steps[0].params["present"] == "yes"


@PROPERTY
@drawn(st.data())
def test_a_damaged_lesson_is_refused_in_one_sentence_or_says_what_it_says(
    tmp_path: Path, data: st.DataObject
):
    asked = {**STEP, "question": {"quantity": "difference", "changes": ["head"]}}
    given = data.draw(damaged({**LESSON, "first_hour": True, "steps": [STEP, asked]}))
    text = json.dumps(given, indent=1)
    path = write(tmp_path / f"a{zlib.crc32(text.encode()):x}.json", text)
    try:
        lesson = read(path)
    except LessonError as error:
        lesson = None
        why = str(error)
    if lesson is None:
        assert re.fullmatch(rf"{path.name}: .*\.", why)
        return
    assert (lesson.title, lesson.minutes) == (given["title"], given["minutes"])
    steps = [(each["text"], each["view"]) for each in given["steps"]]
    assert [(step.text, step.view) for step in lesson.steps] == steps


def second(**change: Any) -> dict[str, Any]:
    """A lesson with a change in its second step."""
    return {"steps": [STEP, {**STEP, **change}]}


REFUSED: dict[str, str | dict[str, Any]] = {
    "a text has half of a character": {"title": "a \ud800"},
    "half of a character": {"\udfff": "a"},
    "title is 'aaa.*; it must be a text of at most 80 characters": {"title": "a" * 81},
    "minutes is 0; it must be a whole number from 1 to 60": {"minutes": 0},
    "'5' in minutes of the file is no int": {"minutes": "5"},
    "needs is 'memory'": {"needs": ["memory"]},
    "steps must be a list of 1 to 30": {"steps": [STEP] * 31},
    "must be a list of 1 to 30 steps": {"steps": []},
    "'author' is unknown; known are title, minutes": {"author": "me"},
    "'note' is unknown; known are text, view": second(note="me"),
    "In number 2 of steps of the file: text is ' '": second(text=" "),
    "In number 2 of steps of the file: the text has 81 words": second(text="word " * 81),
    "81 words; at most 80 fit": second(otherwise={"scale": "word " * 81}),
    "otherwise is 'size'": second(otherwise={"size": "Look."}),
    "number 2 of steps of the file: there is no page 'secrets'": second(view="secrets"),
    "there is no page": second(view="https://example.org/masks"),
    r"'//\[x' is no address": second(view="//[x"),
    "lone surrogate": second(question={"quantity": "\udc00"}),
    "opens no other lesson": second(view="masks?lesson=masks.1"),
    "In question of number 2 of steps of the file: quantity is 'beauty'": second(
        question={"quantity": "beauty"}
    ),
    "There is no quantity in question": second(question={"kind": "cross"}),
    "'answer' is unknown": second(question={"quantity": "masked", "answer": 1}),
    "this is not JSON in UTF-8": "[" * 5_000,
    "is not JSON in UTF-8": "\ud800",
    "must be an object": "[]",
    "must be an object of title": {"name": "other"},
    "There is no title in the file": '{"minutes": 1' + "0" * 400 + "}",
    "is larger than 100,000 bytes": json.dumps(LESSON).ljust(files.MOST_BYTES + 1),
    "is a pointer of Git LFS; run git lfs pull": "version https://git-lfs.github.com/spec/v1\n",
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_is_no_lesson_is_refused_with_the_place_of_the_fault(tmp_path: Path, says: str):
    given = REFUSED[says]
    path = tmp_path / "mine.json"
    text = given if isinstance(given, str) else json.dumps({**LESSON, **given})
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(LessonError, match=rf"^mine\.json: .*{says}.*\.$"):
        read(path)


def test_a_folder_of_one_s_own_is_added_without_what_is_no_lesson(tmp_path: Path, monkeypatch):
    monkeypatch.setenv(files.FOLDER, str(tmp_path))
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").mkdir()
    (tmp_path / "c.json").symlink_to("none")
    (tmp_path / "d.json").symlink_to("d.json")
    for name in ("mine", "map", "before", "My lesson"):
        write(tmp_path / f"{name}.json", LESSON)
    for name, view in (
        ("odd", "?nonsense=1&step=2"),
        ("far", "masks?step=two"),
        ("own", "masks?mask=zero"),
    ):
        write(tmp_path / f"{name}.json", {**LESSON, "steps": [STEP, {**STEP, "view": view}]})
    (tmp_path / "whole.json").write_text(json.dumps(LESSON).ljust(files.MOST_BYTES))
    lessons, wrong = every()
    assert (lessons["mine"].title, lessons["whole"].title) == ("Mine", "Mine")
    assert (lessons["map"].title != "Mine", "before" in lessons) == (True, False)
    assert sorted(wrong) == [
        "My lesson.json: a lesson's file is called by lower-case letters, digits and hyphens.",
        "a.json: this is no file.",
        "b.json: this is no file.",
        "before.json: another lesson is called before, so this one is left out.",
        "c.json: the file cannot be read: No such file or directory.",
        "d.json: the file cannot be read: Too many levels of symbolic links.",
        "far.json: step 2: the address's step=two cannot be read.",
        "map.json: another lesson is called map, so this one is left out.",
        "odd.json: step 2: the address's nonsense=1 cannot be read.",
    ]
    assert "own" in lessons
    assert (find("mine") is None, find("none")) == (False, None)


def test_the_command_names_what_no_page_could_show_and_goes_on_with_the_next_file(tmp_path, capsys):
    odd = write(tmp_path / os.fsdecode(b"\xff.json"), {**LESSON, "title": "\ud800"})
    bad = write(tmp_path / "bad.json", {**LESSON, "steps": [{**STEP, "view": "nowhere?step=x"}]})
    assert main(["lesson", "check", str(odd), str(bad)]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("\ufffd.json: a text has half of a character")
    assert second == "bad.json: In number 1 of steps of the file: there is no page 'nowhere'."


def test_the_command_names_what_a_page_cannot_read_even_if_only_that_page_reads_it(
    tmp_path, capsys
):
    right = [
        "inside_a_head?section=build&a=2",
        "masks?mask=zero",
        "training?view=loss&smoothing=0.2",
        "?step=2",
    ]
    wrong = {
        "inside_a_head?two=zz": "two=zz",
        "masks?mask=zz": "mask=zz",
        "?nonsense=1": "nonsense=1",
        "masks?scale=cubic&step=two": "scale=cubic step=two",
    }
    steps = [{"view": view, "text": "Look."} for view in (*right, *wrong)]
    path = write(tmp_path / "mine.json", {**LESSON, "steps": steps})
    assert main(["lesson", "check", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    says = [f"the address's {each} cannot be read." for each in " ".join(wrong.values()).split()]
    places = [f"mine.json: step {i}: " for i in (5, 6, 7, 8, 8)]
    assert lines == [place + each for place, each in zip(places, says, strict=True)]


def test_the_command_finds_nothing_wrong_in_the_bundled_ones(capsys: pytest.CaptureFixture[str]):
    assert main(["lesson", "check", *map(str, sorted(BUNDLED.rglob("*.json")))]) == 0
    assert capsys.readouterr().out == "15 lessons: nothing is wrong.\n"


def test_the_command_finds_a_question_without_a_margin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    # The one token of this sentence and its end share the first row of the decoder: there is only
    # one key.
    question = {"quantity": "visible", "kind": "decoder"}
    step = {"text": "Look.", "view": "?text=Yes&step=1", "question": question}
    close = {
        "text": "Look.",
        "view": "?step=1",
        "question": {**question, "quantity": "largest-key"},
    }
    path = write(tmp_path / "mine.json", {**LESSON, "steps": [step, close]})
    assert main(["lesson", "check", str(path)]) == 1
    printed = capsys.readouterr().out
    assert "cannot be asked" in printed
    assert printed.count("\n") == 1


NOTE = {
    "sentence": "A",
    "model": "m",
    "asked": "Q?",
    "chose": "x",
    "right": False,
    "reason": "Because.",
}
WRONG = Note(**NOTE)
RIGHT = Note(**{**NOTE, "right": True})


@pytest.mark.parametrize(
    "given",
    [
        "",
        '{"lessons": 3}',
        '{"lessons": NaN}',
        "version https://git-lfs.github.com/spec/v1\n",
        json.dumps({"lessons": {f"l{i}": [] for i in range(201)}}),
        "[" * 100_000,
        " " * 1_000_001,
    ],
)
def test_other_files_hold_no_progress(given: str):
    with pytest.raises(progress.ProgressError, match=r"\.$"):
        progress.read(given.encode())


@PROPERTY
@drawn(damaged({"lessons": {"masks": [{"step": 5}], "map": [{"step": 1, **NOTE}]}}))
def test_damaged_progress_is_refused_or_what_is_left_survives(given: Any):
    with or_refused(progress.ProgressError):
        _, notes, unread = progress.read(json.dumps(given).encode())
        assert set(unread) <= set(given["lessons"])
        assert progress.read(progress.written(notes).encode()) == ("", notes, [])


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("a b", []),
        ("\ud800", []),
        ("map", [{"step": True}]),
        ("map", [{"step": 10**400}]),
        ("map", {"step": 1}),
        ("map", [{"step": 1, "right": True}]),
        ("map", [{"step": 1, **NOTE, "reason": "x" * 2_001}]),
        ("map", [{"step": 1, **NOTE, "sentence": "half \ud800"}]),
        ("map", [{"step": 1}] * 31),
    ],
)
def test_what_is_wrong_of_one_lesson_is_named_and_the_progress_of_others_is_kept(
    name: str, steps: Any
):
    given = {"lessons": {"masks": [{"step": 5}], name: steps}}
    _, notes, unread = progress.read(json.dumps(given).encode())
    assert notes == {"masks": {4: None}}
    assert unread == [name.replace("\ud800", "\ufffd")]
    progress.written(notes).encode()


def test_the_score_of_a_check_and_the_name_stand_in_the_file():
    notes = {"before": {i: RIGHT if i < 4 else WRONG for i in range(8)}, "after": {0: None}}
    text = progress.written(notes, "Ana")
    assert '"step": 1' in text
    assert json.loads(text)["right in checks"] == {"before": 4}
    assert progress.read(text.encode()) == ("Ana", notes, [])
    assert progress.read(progress.written(notes).encode()).student == ""
    assert progress.score(notes, "after").answers == 0
    hostile = json.dumps({"lessons": {}, "name": "a\u001b[31m\ud800" + "b" * 200}).encode()
    assert progress.read(hostile).student == ("a[31m" + "b" * 200)[:80]


# --- a class in one table ------------------------------------------------------------------------

ANA = {
    "before": {i: RIGHT if i < 4 else WRONG for i in range(8)},
    "map": {0: None, 1: RIGHT, 2: WRONG},
    "after": {i: RIGHT if i < 7 else WRONG for i in range(8)},
}
BEN = {"map": {0: None, 2: WRONG}, "ours": {0: RIGHT}}
DAMAGED = b"{"
HALF = b'{"lessons": {"map": [{"step": 1}], "masks": 3}}'


def made() -> Table:
    return table(
        [
            ("a.json", progress.written(ANA, "=Ana").encode()),
            ("ben.json", progress.written(BEN).encode()),
        ]
    )


def cells(found: Table, name: str) -> dict[str, object]:
    row = next(each for each in found.rows if each[0] == name)
    return dict(zip(found.head, row, strict=True))


def test_the_table_says_who_did_what_and_the_checks():
    lesson = find("map")
    assert lesson is not None
    ana = cells(made(), "=Ana")
    assert (ana["before (of 8)"], ana["after (of 8)"]) == (4, 7)
    assert (ana["answers"], ana["right"]) == (2, 1)
    assert ana[lesson.title] == f"3 of {len(lesson.steps)} steps"
    ben = cells(made(), "ben")
    assert (ben["before (of 8)"], ben["answers"], ben["right"], ben["ours"]) == ("", 2, 1, "1 step")
    assert ana["ours"] == ""
    hardest = f"Most got wrong: step 3 of “{lesson.title}”, by 2 of 2."
    assert made().summary == f"2 files read. {hardest}"
    nothing = table([("a.json", progress.written({"map": {0: None}}).encode())])
    assert nothing.summary == "1 file read."


def test_damaged_files_get_a_sentence_each_and_the_others_count():
    files = {
        "a.json": progress.written(ANA, "=Ana").encode(),
        "bad.json": DAMAGED,
        "half.json": HALF,
    }
    found = table(files.items())
    assert [row[0] for row in found.rows] == ["=Ana", "half"]
    assert found.wrong == (
        "bad.json: this file holds no progress that was saved on this page.",
        "half.json: what it says of masks cannot be read.",
    )
    assert found.summary.startswith("2 files read. Most got wrong:")
    assert table([]).summary == "0 files read."
