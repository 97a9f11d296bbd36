"""A class in one table, from its files of progress, whole and damaged."""

import csv
import io
import os
from pathlib import Path

import pytest

from explorer.app.__main__ import main
from explorer.app.server.lessons import progress
from explorer.app.server.lessons.files import find
from explorer.app.server.lessons.table import Table, of_folder, table

NOTE = {"sentence": "A", "model": "m", "asked": "Q?", "chose": "x", "right": False, "reason": "Because."}
RIGHT = {**NOTE, "right": True}
ANA = {
    "before": {i: RIGHT if i < 4 else NOTE for i in range(8)},
    "map": {0: None, 1: RIGHT, 2: NOTE},
    "after": {i: RIGHT if i < 7 else NOTE for i in range(8)},
}
BEN = {"map": {0: None, 2: NOTE}, "ours": {0: RIGHT}}
DAMAGED = b"{"
HALF = b'{"lessons": {"map": [{"step": 1}], "masks": 3}}'


def made() -> Table:
    files = {
        "a.json": progress.written(ANA, "=Ana").encode(),
        "ben.json": progress.written(BEN).encode(),
        "bad.json": DAMAGED,
        "half.json": HALF,
        "lost.json": None,
    }
    return table(files.items())


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


def test_the_hardest_step_is_the_one_that_most_got_wrong():
    lesson = find("map")
    assert lesson is not None
    assert made().hardest == f"Most got wrong: step 3 of “{lesson.title}”, by 2 of 2."
    assert table([("a.json", progress.written({"map": {0: None}}).encode())]).hardest == ""


def test_damaged_files_get_a_sentence_each_and_the_others_count():
    found = made()
    assert len(found.rows) == 3
    assert found.wrong == (
        "bad.json: this file holds no progress that was saved on this page.",
        "half.json: what it says of masks cannot be read.",
        "lost.json: this file cannot be read.",
    )
    assert found.summary.startswith("3 files read. Most got wrong:")
    assert table([]).summary == "0 files read."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.json").write_text(progress.written(ANA, "=Ana"))
    (tmp_path / "bad.json").write_bytes(DAMAGED)
    (tmp_path / "notes.txt").write_text("no file of progress")
    return tmp_path


def test_pipes_folders_and_broken_links_end_no_table(folder: Path):
    os.mkfifo(folder / "b.json")
    (folder / "c.json").mkdir()
    (folder / "d.json").symlink_to("none")
    found = of_folder(folder)
    assert [row[0] for row in found.rows] == ["=Ana"]
    assert found.wrong == (
        "b.json: this file cannot be read.",
        "bad.json: this file holds no progress that was saved on this page.",
        "c.json: this file cannot be read.",
        "d.json: this file cannot be read.",
    )


def test_the_command_prints_the_table_and_names_what_it_cannot_read(folder, capsys):
    assert main(["lesson", "table", str(folder)]) == 1
    shown = capsys.readouterr()
    head, row, told = shown.out.splitlines()
    assert head.startswith("name  before (of 8)")
    assert row.startswith("=Ana  4")
    assert told.startswith("1 file read.")
    assert shown.err == "bad.json: this file holds no progress that was saved on this page.\n"


def test_the_command_writes_csv_that_no_spreadsheet_runs(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "bad.json").unlink()
    assert main(["lesson", "table", str(folder), "--csv", "-"]) == 0
    text = capsys.readouterr().out
    assert text[0] == "\ufeff"
    assert next(csv.DictReader(io.StringIO(text[1:])))["name"] == "'=Ana"
    assert main(["lesson", "table", str(folder), "--csv", str(folder / "class.csv")]) == 0
    assert (folder / "class.csv").read_text() == text
    assert capsys.readouterr().out.startswith("1 file read.")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["lesson", "table", str(tmp_path / "none")]) == 2
    assert "none: No such file or directory." in capsys.readouterr().err
