"""Options that a function's signature makes: what they read and what they refuse."""

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from transformer.commands.program import Commands, OutputFile, run_program
from transformer.text.kinds import at_least, one_of, whole


@dataclass(frozen=True, kw_only=True)
class Penalty:
    """What others inherit.

    penalty [A]: a of length^a
    """

    penalty: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Search(Penalty):
    """A group of options.

    width: beam width
    """

    width: Annotated[int, whole(1, 9)] = 1
    rule: Annotated[str, one_of("sum", "mean"), "how it scores"] = "sum"

    def __post_init__(self) -> None:
        at_least(1).check("The width", self.width)


def pair(word: str) -> tuple[int, int]:
    """Two numbers with a dot between them."""
    if word.count(".") != 1:
        raise ValueError(f"{word} is no pair.")
    return int(word[0]), int(word[2])


TABLE = {"d_model": Annotated[int, "width"], "dropout": Annotated[float, "a share, such as 10 %"]}
CALLS: list[dict[str, Any]] = []


def work(
    name: Annotated[str, "NAME", "a name"],
    files: tuple[Path, ...] = (),
    *,
    search: Search,
    sizes: Annotated[dict[str, Any], TABLE],
    output: Annotated[OutputFile | None, "FILE", "a file"] = None,
    why: list[int] | None = None,
    ways: Annotated[tuple[Literal["a", "b"], ...], "ways"] = (),
    head: Annotated[tuple[int, int] | None, pair, "LAYER.HEAD"] = None,
    no_split: Annotated[bool, "at once"] = False,
) -> int:
    """Do some work, 100 % of it.

    More about it: nothing that names a parameter.

    files [FILE[:WEIGHT]]: files: one or more, of any
        length: short or long
    why [STEP]: a step
    head: a head
    """
    CALLS.append(dict(locals()))
    return 7


def need(*, data: Annotated[str, "FILE", "data"]) -> int:
    """Need an option."""
    return len(data)


def run(*words: str) -> int:
    commands: Commands = {"work": work, "need": need, "more": {"work": work}}
    return run_program("program", "About it.", lambda: commands, words)


PLAIN: dict[str, Any] = {"name": "x", "files": (), "search": Search(), "sizes": {}, "output": None}
PLAIN |= {"why": None, "ways": (), "head": None, "no_split": False}


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("work x", {}),
        ("more work x y z", {"files": (Path("y"), Path("z"))}),
        ("work --why 3 x --why 4", {"why": [3, 4]}),
        ("work x --ways a b --no-split", {"ways": ("a", "b"), "no_split": True}),
        ("work x --head 3.5 --d-model 8", {"head": (3, 5), "sizes": {"d_model": 8}}),
        ("work x --width 4 --rule mean", {"search": Search(width=4, rule="mean")}),
        ("work x --output here", {"output": Path("here")}),
    ],
)
def test_a_function_is_called_with_the_values_of_its_options(
    words: str, values: dict[str, Any]
) -> None:
    assert run(*words.split()) == 7
    assert CALLS.pop() == PLAIN | values


def test_a_reader_that_has_gone_ends_a_command_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def write() -> int:
        """Write to nobody."""
        raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", written := io.StringIO())
    assert run_program("program", None, lambda: {"write": write}, ["write"]) == 1
    assert written.closed


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("work", "work: the following arguments are required: NAME"),
        ("need", "need: the following arguments are required: --data"),
        ("more", "more: the following arguments are required: COMMAND"),
        (
            "work x --width 10",
            "work: argument --width: it must be a whole number from 1 to 9, not '10'",
        ),
        (
            "work x --width a",
            "work: argument --width: it must be a whole number from 1 to 9, not 'a'",
        ),
        ("work x --why much", "work: argument --why: it must be a whole number, not 'much'"),
        ("work x --dropout much", "work: argument --dropout: it must be a number, not 'much'"),
        (
            "work x --rule max",
            "work: argument --rule: invalid choice: 'max' (choose from 'sum', 'mean')",
        ),
        ("work x --ways a c", "work: argument --ways: invalid choice: 'c' (choose from 'a', 'b')"),
        ("work x --head 35", "work: argument --head: 35 is no pair"),
        (
            "work x --output /none/here",
            "work: argument --output: There is no folder /none to write here into; make it first",
        ),
    ],
)
def test_a_wrong_word_is_one_sentence(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(*words.split())
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", f"program {sentence}; --help lists the options.\n")
