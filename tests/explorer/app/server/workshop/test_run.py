"""The log of a run, read while another process writes it, and the head that opens first."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from explorer.app.server.workshop.run import POINTS, Log, difference


def line(step: int, **values: float) -> str:
    usual = {"loss": 1 / step, "learning_rate": 1e-3, "gradient_norm": 1.0, "tokens": 7, "seconds": 0.5}
    return json.dumps({"step": step, **usual, **values}) + "\n"


def test_a_log_that_is_not_there_yet_has_no_points(tmp_path: Path) -> None:
    assert Log(tmp_path / "log.jsonl").curves().step == 0


def test_a_growing_log_is_read_on_and_a_half_written_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = Log(path)
    path.write_text(line(1) + line(2, valid_loss=3.0, valid_loss_average=2.0, exact=0.25) + line(3)[:9])
    first = log.curves()
    assert (first.step, first.seconds) == (2, 1.0)
    assert (first.valid, first.exact) == (((2, 2.0),), ((2, 0.25),))
    with path.open("a") as file:
        file.write(line(3)[9:] + "no JSON\n[]\n" + "[" * 50_000 + "\n" + line(4))
        file.write(line(5, loss=float("inf")) + line(6, seconds="1") + line(7, exact=10**400))
    assert [step for step, _ in log.curves().loss] == [1, 2, 3, 4]


def test_a_long_log_becomes_means_of_neighbouring_steps(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(line(step) for step in range(1, 2 * POINTS + 1)))
    points = Log(path).curves().loss
    assert len(points) == POINTS
    assert points[0] == (2, 0.75)
    assert points[-1][0] == 2 * POINTS


def test_rows_that_each_look_at_a_key_of_their_own_differ_most() -> None:
    assert difference(np.eye(5)) == pytest.approx(math.log(5))
    assert difference(np.eye(5)[::-1]) == pytest.approx(math.log(5))


def test_rows_that_are_alike_do_not_differ_however_sharp_they_are() -> None:
    assert difference(np.eye(5)[[2, 2, 2]]) == pytest.approx(0)
    assert difference(np.full((4, 3), 1 / 3)) == pytest.approx(0)
