"""Lessons as files: what is read, what is refused and where, and progress that a student keeps."""

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from properties import PROPERTY, damaged, or_refused

from explorer.app.__main__ import main
from explorer.app.server.lessons import files, progress
from explorer.app.server.lessons.files import (
    BUNDLED,
    CHECKS,
    ROOT,
    LessonError,
    checks,
    every,
    find,
    lines,
    read,
)
from explorer.lenses.what_if.questions import QUANTITIES

STEP = {"text": "Look.", "view": "cross_attention?step=2"}
LESSON = {"title": "Mine", "minutes": 5, "purpose": "You can look.", "needs": ["cross"], "steps": [STEP]}


def write(path: Path, given: Any) -> Path:
    path.write_text(given if isinstance(given, str) else json.dumps(given, indent=1))
    return path


def test_the_lessons_of_the_first_hour_take_an_hour():
    lessons, wrong = every()
    assert not wrong
    hour = [each for each in lessons.values() if each.first_hour]
    assert sum(each.minutes for each in hour) == 60
    for lesson in lessons.values():
        assert 5 <= lesson.minutes <= 15
        assert 5 <= len(lesson.steps) <= 9
        assert any(step.question for step in lesson.steps)
        assert not any("!" in step.text for step in lesson.steps)


def test_the_lessons_ask_for_all_quantities():
    asked = {step.question.quantity for each in every()[0].values() for step in each.steps if step.question}
    assert asked == set(QUANTITIES)


def test_the_checks_ask_the_same_eight_kinds_of_questions():
    before, after = checks().values()
    assert [each.question for each in before.steps] == [each.question for each in after.steps]
    assert len({each.question for each in before.steps if each.question}) == 8
    assert before.is_check
    assert find("after") == after
    assert not {*CHECKS} & {*every()[0]}


def test_a_lesson_of_one_s_own_is_no_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(files.FOLDER, str(tmp_path))
    write(tmp_path / "before.json", LESSON)
    lessons, wrong = every()
    assert "before" not in lessons
    assert wrong == ["before.json: another lesson is called before, so this one is left out."]


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


def test_a_lesson_is_read(tmp_path: Path):
    asked = {**STEP, "question": {"quantity": "difference", "changes": ["head"]}}
    lesson = read(write(tmp_path / "03-mine.json", {**LESSON, "steps": [STEP, asked]}))
    assert (lesson.name, lesson.title, lesson.minutes, lesson.first_hour) == ("mine", "Mine", 5, False)
    assert lesson.steps[0].page == "pages/cross_attention.py"
    assert lesson.steps[0].params == {"step": "2"}
    assert lesson.steps[1].question is not None
    assert lesson.steps[1].question.changes == ("head",)


@PROPERTY
@drawn(st.data())
def test_a_damaged_lesson_is_refused_with_its_lines_or_says_what_it_says(tmp_path: Path, data: st.DataObject):
    asked = {**STEP, "question": {"quantity": "difference", "changes": ["head"]}}
    given = data.draw(damaged({**LESSON, "first_hour": True, "steps": [STEP, asked]}))
    text = json.dumps(given, indent=1)
    path = write(tmp_path / f"a{zlib.crc32(text.encode()):x}.json", text)
    try:
        lesson = read(path)
    except LessonError as error:
        lesson, found = None, error.found
        assert all(1 <= line <= len(text.splitlines()) and told.endswith(".") for line, told in found)
    assert lesson is None or (lesson.title, lesson.minutes) == (given["title"], given["minutes"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"title": "a \ud800"}, "line 2: this text has half of a character"),
        ({"\udfff": "a"}, "half of a character"),
        ({"title": "a" * 81}, "title"),
        ({"minutes": 0}, "minutes"),
        ({"needs": ["memory"]}, "needs"),
        ({"steps": []}, "steps"),
        ({"steps": [STEP] * 31}, "steps"),
        ({"author": "me"}, "'author' is unknown"),
    ],
)
def test_what_is_no_lesson_is_refused(tmp_path: Path, change: dict, says: str):
    with pytest.raises(LessonError, match=says):
        read(write(tmp_path / "mine.json", {**LESSON, **change}))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"text": "word " * 81}, "81 words"),
        ({"view": "secrets"}, "there is no page 'secrets'"),
        ({"view": "../app"}, "there is no page"),
        ({"view": "https://example.org/masks"}, "there is no page"),
        ({"view": "//[x"}, "'//\\[x' is no address"),
        ({"view": "http://[::1"}, "is no address"),
        ({"text": "half \ud800"}, "lone surrogate"),
        ({"question": {"quantity": "\udc00"}}, "lone surrogate"),
        ({"view": "masks?lesson=masks.1"}, "opens no other lesson"),
        ({"question": {"quantity": "beauty"}}, "beauty"),
        ({"question": {"kind": "cross"}}, "quantity"),
        ({"question": {"quantity": "masked", "answer": 1}}, "'answer' is unknown"),
    ],
)
def test_what_is_wrong_in_a_step_is_named_with_its_line(tmp_path: Path, change: dict, says: str):
    path = write(tmp_path / "mine.json", {**LESSON, "steps": [STEP, {**STEP, **change}]})
    with pytest.raises(LessonError, match=says) as caught:
        read(path)
    text = path.read_text().splitlines()
    second = [i for i, line in enumerate(text, 1) if '"text"' in line][1]
    assert all(line >= second - 1 for line, _ in caught.value.found)


HOSTILE = {
    "{": "is not JSON in UTF-8",
    "[" * 5_000: "is not JSON in UTF-8",
    "\ud800": "is not JSON in UTF-8",
    "[]": "must be",
    '{"steps": 3}': "must be",
    '{"minutes": NaN}': "must be",
    '{"minutes": 1' + "0" * 400 + "}": "must be",
    " " * 100_001: "is larger than 100,000 bytes",
    "version https://git-lfs.github.com/spec/v1\n": "is a pointer of Git LFS; run git lfs pull",
}


@pytest.mark.parametrize("content", HOSTILE)
def test_hostile_files_are_refused_in_a_sentence(tmp_path: Path, content: str):
    path = tmp_path / "mine.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(LessonError, match=f"^mine.json, line 1: [^.]*{HOSTILE[content]}[^\\n]*[.]$"):
        read(path)


def test_pipes_folders_and_broken_links_are_no_lessons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(files.FOLDER, str(tmp_path))
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").mkdir()
    (tmp_path / "c.json").symlink_to("none")
    (tmp_path / "d.json").symlink_to("d.json")
    write(tmp_path / "mine.json", LESSON)
    lessons, wrong = every()
    assert "mine" in lessons
    assert wrong == [
        "a.json, line 1: this is no file.",
        "b.json, line 1: this is no file.",
        "c.json, line 1: the file cannot be read: No such file or directory.",
        "d.json, line 1: the file cannot be read: Too many levels of symbolic links.",
    ]


def test_a_name_that_no_address_can_hold_is_refused(tmp_path: Path):
    with pytest.raises(LessonError, match="called by"):
        read(write(tmp_path / "My lesson.json", LESSON))


def test_lines_are_those_of_the_values():
    text = '{\n "a": [\n  1,\n  {"b": "x, \\"y\\": {"}\n ],\n "c": 2\n}'
    found = lines(text)
    assert found["a",] == 2
    assert found["a", 0] == 3
    assert found["a", 1, "b"] == 4
    assert found["c",] == 6


def test_a_folder_of_one_s_own_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(files.FOLDER, str(tmp_path))
    write(tmp_path / "mine.json", LESSON)
    write(tmp_path / "bad.json", "{")
    write(tmp_path / "map.json", LESSON)
    lessons, wrong = every()
    assert lessons["mine"].title == "Mine"
    assert lessons["map"].title != "Mine"
    assert len(wrong) == 2
    assert find("mine") is not None
    assert find("none") is None


def test_the_command_names_what_no_page_could_show_and_goes_on_with_the_next_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    odd = write(tmp_path / os.fsdecode(b"\xff.json"), {**LESSON, "title": "\ud800"})
    bad = write(tmp_path / "bad.json", {**LESSON, "steps": [{**STEP, "view": "//[x"}]})
    assert main(["lesson", "check", str(odd), str(bad)]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{tmp_path}/\ufffd.json:2: this text has half of a character, a lone surrogate."
    assert second.startswith(f"{bad}:")


def test_the_command_names_what_a_page_cannot_read_even_if_only_that_page_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
    assert [line.partition(" ")[2] for line in lines] == says


def test_the_command_ends_quietly_when_nobody_reads_and_when_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    bad = write(tmp_path / "bad.json", "{")
    command = [sys.executable, "-m", "explorer.app", "lesson", "check", *[str(bad)] * 20]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.close()
        assert program.stderr is not None
        assert b"Traceback" not in program.stderr.read()
    assert program.returncode == 1

    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("explorer.app.server.lessons.asking.check", interrupted)
    assert main(["lesson", "check", str(bad)]) == 130
    assert capsys.readouterr().err == "Interrupted.\n"


def test_the_command_names_lines_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    bad = write(tmp_path / "bad.json", {**LESSON, "steps": [{**STEP, "view": "nowhere?step=x"}]})
    assert main(["lesson", "check", str(bad)]) == 1
    assert capsys.readouterr().out == f"{bad}:11: there is no page 'nowhere'.\n"


def test_the_command_finds_nothing_wrong_in_the_bundled_ones(capsys: pytest.CaptureFixture[str]):
    assert main(["lesson", "check", *map(str, sorted(BUNDLED.rglob("*.json")))]) == 0
    assert capsys.readouterr().out == "14 lessons: nothing is wrong.\n"


def test_the_command_finds_a_question_without_a_margin(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    # The one token of this sentence and its end share the first row of the decoder: there is only one key.
    step = {
        "text": "Look.",
        "view": "?text=Yes&step=1",
        "question": {"quantity": "visible", "kind": "decoder"},
    }
    close = {"text": "Look.", "view": "?step=1", "question": {"quantity": "largest-key", "kind": "decoder"}}
    path = write(tmp_path / "mine.json", {**LESSON, "steps": [step, close]})
    assert main(["lesson", "check", str(path)]) == 1
    printed = capsys.readouterr().out
    assert "cannot be asked" in printed
    assert printed.count("\n") == 1


NOTE = {"sentence": "A", "model": "m", "asked": "Q?", "chose": "x", "right": False, "reason": "Because."}


def test_progress_is_read_as_it_was_written():
    notes = {"map": {0: None, 1: NOTE}, "masks": {4: None}}
    text = progress.written(notes)
    assert progress.read(text.encode()) == (notes, [])
    assert '"step": 1' in text


@pytest.mark.parametrize(
    "given",
    [
        "",
        "{",
        "[]",
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
        found, wrong = progress.read(json.dumps(given).encode())
        assert set(wrong) <= set(given["lessons"])
        assert progress.read(progress.written(found).encode()) == (found, [])


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("a b", []),
        ("\ud800", []),
        ("map", [{"step": True}]),
        ("map", [{"step": float("nan")}]),
        ("map", [{"step": 10**400}]),
        ("map", {"step": 1}),
        ("map", [{"step": 1, "right": True}]),
        ("map", [{"step": 1, **NOTE, "reason": "x" * 2_001}]),
        ("map", [{"step": 1, **NOTE, "sentence": "half \ud800"}]),
        ("map", [{"step": 1}] * 31),
    ],
)
def test_what_is_wrong_of_one_lesson_is_named_and_the_progress_of_others_is_kept(name: str, steps: Any):
    given = {"lessons": {"masks": [{"step": 5}], name: steps}}
    found, wrong = progress.read(json.dumps(given).encode())
    assert found == {"masks": {4: None}}
    assert wrong == [name.replace("\ud800", "\ufffd")]
    progress.written(found).encode()


def test_the_score_of_a_check_and_the_name_stand_in_the_file():
    notes = {"before": {i: {**NOTE, "right": i < 4} for i in range(8)}, "after": {0: None}}
    text = progress.written(notes, "Ana")
    assert json.loads(text)["right in checks"] == {"before": 4}
    assert progress.student(text.encode()) == "Ana"
    assert progress.student(progress.written(notes).encode()) == ""
    assert progress.read(text.encode()) == (notes, [])
    assert progress.score(notes, "after") is None
    hostile = json.dumps({"lessons": {}, "name": "a\u001b[31m\ud800" + "b" * 200}).encode()
    assert progress.student(hostile) == ("a[31m" + "b" * 200)[:80]


def test_a_file_may_be_as_large_as_the_limit_and_no_larger(tmp_path: Path):
    whole = json.dumps(LESSON).ljust(files.MOST_BYTES)
    assert read(write(tmp_path / "whole.json", whole)).title == "Mine"
    with pytest.raises(LessonError, match="larger than 100,000 bytes"):
        read(write(tmp_path / "larger.json", whole + " "))
