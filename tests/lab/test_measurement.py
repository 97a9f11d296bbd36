"""`lab.measurement`: a function becomes a command, and what it returns a file with a head."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import pytest

from lab.measurement import Command, File, Json, command, measurement, parser_of


@command()
def copy(
    data: Annotated[tuple[File, ...], "files to read"],
    how: Annotated[Literal["slow", "fast"], "the way"] = "slow",
    limit: Annotated[int | None, "at most so many"] = None,
    again: Annotated[bool, "whether to do it twice"] = False,
) -> int:
    """Copies files.

    Nobody reads this.
    """
    print(data, how, limit, again)
    return 3


@measurement("found/twice.json", parts=["one", "two"])
def twice(number: Annotated[int, "what is doubled"] = 2) -> Json:
    """Doubles."""
    return {
        "version": 1,
        "number": number,
        "one": lambda: {"is": 2 * number},
        "two": lambda: {"is": 4 * number},
    }


def run(what: Command, *words: str) -> int:
    parsed = parser_of([what]).parse_args([what.name, *words])
    return int(parsed.run(parsed))


def test_the_types_of_the_parameters_declare_the_options(capsys: pytest.CaptureFixture[str]):
    assert run(copy, "--data", "a", "b", "--how", "fast", "--limit", "4", "--again") == 3
    assert capsys.readouterr().out == f"{(Path('a'), Path('b'))} fast 4 True\n"
    assert run(copy, "--data", "a") == 3
    assert capsys.readouterr().out == f"{(Path('a'),)} slow None False\n"
    with pytest.raises(SystemExit):
        parser_of([copy]).parse_args(["copy", "--help"])
    said = capsys.readouterr().out
    assert "Copies files." in said
    assert "Nobody" not in said
    assert "--data FILE" in said
    assert "the way (default: slow)" in said


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "--data"),
        (["--data", "a", "--limit", "0"], "--limit: it must be a whole number from 1, not '0'"),
        (["--data", "a", "--limit", "x"], "--limit: it must be a whole number from 1, not 'x'"),
        (["--data", "a", "--how", "well"], "--how: invalid choice"),
    ],
)
def test_senseless_words_are_refused_in_one_sentence(words, reason, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(copy, *words)
    said = capsys.readouterr().err
    assert reason in said
    assert len(said.splitlines()) == 1


def test_a_file_begins_with_its_head_and_says_which_command_makes_it_again(tmp_path: Path):
    path = tmp_path / "a file.json"
    assert run(twice, "--output", str(path)) == 0
    found = json.loads(path.read_text())
    assert list(found) == ["version", "command", "date", "number", "one", "two"]
    assert (found["one"], found["two"]) == ({"is": 4}, {"is": 8})
    assert found["command"] == f"python -m lab twice --number 2 --output '{path}'"


def test_a_part_alone_keeps_the_others_and_says_when_it_was_made(tmp_path: Path):
    words = ["--output", str(tmp_path / "file.json")]
    assert run(twice, *words) == 0
    before = json.loads((tmp_path / "file.json").read_text())
    assert run(twice, *words, "--number", "5", "--only", "two") == 0
    found = json.loads((tmp_path / "file.json").read_text())
    assert (found["number"], found["one"], found["two"]) == (2, {"is": 4}, {"is": 20})
    assert found["command"] == before["command"]
    assert "--number 5 --only two" in found["again"]["two"]["command"]
    assert run(twice, "--output", str(tmp_path / "new.json"), "--only", "one") == 0
    found = json.loads((tmp_path / "new.json").read_text())
    assert not {"two", "again"} & set(found)
