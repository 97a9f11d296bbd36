"""Plans stay within bounds; a visitor's file is read, or refused in one sentence."""

from __future__ import annotations

import gzip
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from programs import main
from properties import PROPERTY, as_file, damaged, or_refused

from explorer.app.server.workshop.plan import (
    BOUNDS,
    LARGEST,
    OWN,
    PLAN_FILE,
    TASKS,
    Plan,
    TrainingOrder,
    example,
    own_pairs,
)
from transformer.text.pairs import DataError, SentencePair

LINES = [f"one {i}\teins {i}" for i in range(60)]


def content(lines: list[str]) -> bytes:
    return "\n".join(lines).encode()


@pytest.mark.parametrize("task", TASKS)
def test_an_order_survives_being_written(task: str, tmp_path: Path) -> None:
    plan = Plan(task=task, length=6, width=64, heads=2, layers=1, steps=200)
    order = TrainingOrder(plan, SentencePair("a b", "b a"))
    order.write(tmp_path)
    assert TrainingOrder.read(tmp_path) == order


BOUNDED = {
    "task": ("../x",),
    "length": (2, 5.0),
    "width": (4096,),
    "heads": (3,),
    "layers": (0,),
    "steps": (10**9, True, "100"),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_a_value_out_of_bounds_is_refused_by_its_name(name: str) -> None:
    for value in BOUNDED[name]:
        with pytest.raises(ValueError, match=f"^{name} is {value!r}; it must be "):
            Plan(**{name: value})


@PROPERTY
@given(damaged(asdict(Plan())))
def test_a_damaged_plan_is_refused_in_one_sentence_or_survives(values: dict[str, Any]) -> None:
    with or_refused(ValueError), tempfile.TemporaryDirectory() as folder:
        written = {"plan": values, "shown": {"source": "a", "target": "b"}}
        (Path(folder) / PLAN_FILE).write_text(json.dumps(written))
        order = TrainingOrder.read(Path(folder))
        assert Plan(**as_file(asdict(order.plan))) == order.plan


def test_the_command_is_one_that_the_package_knows(capsys: pytest.CaptureFixture[str]) -> None:
    for task in TASKS:
        command = Plan(task=task).arguments("run")
        assert "--device" not in command, "the rule of devices holds here, too"
        with pytest.raises(SystemExit) as ended:
            main([*command, "--obey-input", "--help"])
        assert ended.value.code == 0
    capsys.readouterr()


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_read_and_one_pair_in_ten_is_held_out(packed: bool) -> None:
    name, data = ("a.tsv.gz", gzip.compress(content(LINES))) if packed else ("a.tsv", content(LINES))
    pairs = own_pairs(name, data)
    assert (len(pairs.train), len(pairs.valid)) == (54, 6)
    assert not {pair.source for pair in pairs.train} & {pair.source for pair in pairs.valid}
    assert example(Plan(task=OWN), pairs) in pairs.valid


def test_many_pairs_hold_out_two_hundred() -> None:
    pairs = own_pairs("a.tsv", content([f"s {i}\tt {i}" for i in range(10_000)]))
    assert len(pairs.valid) == 200


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (content(["a b", *LINES]), "the file:1: expected source, tab, target"),
        (content(["a\t", *LINES]), "the file:1: the target is empty"),
        (content(["a\tb\tc", *LINES]), "found 3 columns"),
        (content([f"{chr(0x4E00 + i)}\ta" for i in range(900)]), "different characters, and no vocabulary"),
        (content([f"{'long ' * 70}{i}\ta" for i in range(30)]), "pairs that are learned have a side of 64"),
        (content(LINES[:5] * 20), "5 different pairs; training needs at least 20"),
        (b"x" * (LARGEST + 1), "at most 2 MiB are allowed"),
        (b"x" * (BOUNDS.line + 1), "more than 8 KiB"),
        (content(["a\tb"] * (BOUNDS.lines + 1)), "more than 20,000 lines"),
    ],
    ids=lambda each: each[:20] if isinstance(each, str) else None,
)
def test_a_bad_file_is_refused_in_one_sentence(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as refused:
        own_pairs("a.tsv", data)
    assert "/" not in str(refused.value).replace("source, tab", "")


def test_a_packed_file_that_grows_too_large_is_refused() -> None:
    with pytest.raises(DataError, match=r"unpacks to more than 2 MiB|more than 20,000 lines"):
        own_pairs("a.tsv.gz", gzip.compress(b"a\tb\n" * 10**6))


def test_the_example_of_a_toy_is_held_out_and_as_long_as_it_may_be() -> None:
    pair = example(Plan(task="reverse", length=8), None)
    assert isinstance(pair, SentencePair)
    assert len(pair.source.split()) == 8
    assert pair.target.split() == pair.source.split()[::-1]
