"""Plans and files of pairs, read or refused in one sentence; the log of a run while it grows."""

import gzip
import json
import math
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
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
from explorer.app.server.workshop.run import POINTS, Log, difference
from transformer.text.pairs import DataError, SentencePair

LINES = [f"one {i}\teins {i}" for i in range(60)]


def content(lines: list[str]) -> bytes:
    return "\n".join(lines).encode()


@pytest.mark.parametrize("task", TASKS)
def test_an_order_survives_being_written_and_its_command_is_one_that_the_package_knows(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(task=task, length=6, width=64, heads=2, layers=1, steps=200)
    order = TrainingOrder(plan, SentencePair("a b", "b a"))
    order.write(tmp_path)
    assert TrainingOrder.read(tmp_path) == order
    command = plan.arguments("run")
    assert "--device" not in command, "the rule of devices holds here, too"
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--obey-input", "--help"])
    assert "usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", "../x"),
        ("length", 2),
        ("length", 5.0),
        ("width", 4096),
        ("heads", 3),
        ("layers", 0),
        *(("steps", value) for value in (10**9, True, "100")),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_its_name(name: str, value: object) -> None:
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


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("count", "held_out"), [(60, 6), (10_000, 200)])
def test_a_file_is_read_and_one_pair_in_ten_is_held_out_but_at_most_200(packed, count, held_out):
    data = content([f"one {i}\teins {i}" for i in range(count)])
    pairs = own_pairs("a.tsv.gz", gzip.compress(data)) if packed else own_pairs("a.tsv", data)
    assert (len(pairs.train), len(pairs.valid)) == (count - held_out, held_out)
    assert not {pair.source for pair in pairs.train} & {pair.source for pair in pairs.valid}
    assert example(Plan(task=OWN), pairs) in pairs.valid


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
    assert len(pair.source.split()) == 8
    assert pair.target.split() == pair.source.split()[::-1]


# --- the log ------------------------------------------------------------------------------------------------


def line(step: int, **values: float) -> str:
    usual = {"loss": 1 / step, "learning_rate": 1e-3, "gradient_norm": 1.0, "tokens": 7, "seconds": 0.5}
    return json.dumps({"step": step, **usual, **values}) + "\n"


def test_a_growing_log_is_read_on_and_a_half_written_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = Log(path)
    assert log.curves().step == 0
    path.write_text(line(1) + line(2, valid_loss=3.0, valid_loss_average=2.0, exact=0.25) + line(3)[:9])
    first = log.curves()
    assert (first.step, first.seconds) == (2, 1.0)
    assert (first.valid, first.exact) == (((2, 2.0),), ((2, 0.25),))
    with path.open("a") as file:
        file.write(line(3)[9:] + "no JSON\n[]\n" + "[" * 50_000 + "\n" + line(4))
        file.write(line(5, loss=float("inf")) + line(6, seconds="1") + line(7, exact=10**400))
    assert log.curves().loss == tuple((step, pytest.approx(1 / step)) for step in (1, 2, 3, 4))


def test_a_long_log_becomes_means_of_neighbouring_steps(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(line(step) for step in range(1, 2 * POINTS + 1)))
    means = tuple(
        (step, pytest.approx((1 / step + 1 / (step - 1)) / 2)) for step in range(2, 2 * POINTS + 1, 2)
    )
    assert Log(path).curves().loss == means


@pytest.mark.parametrize(
    ("rows", "nats"),
    [
        (np.eye(5), math.log(5)),
        (np.eye(5)[::-1], math.log(5)),
        (np.eye(5)[[2, 2, 2]], 0),  # rows that are alike do not differ however sharp they are
        (np.full((4, 3), 1 / 3), 0),
        (np.array([[1, 0], [0.5, 0.5]]), 0.75 * math.log(4 / 3) + 0.25 * math.log(4) - 0.5 * math.log(2)),
    ],
)
def test_rows_that_each_look_at_a_key_of_their_own_differ_most(rows: np.ndarray, nats: float) -> None:
    assert difference(rows) == pytest.approx(nats)
