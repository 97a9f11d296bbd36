"""The section "cost", and the time of one pass against one pass per token, as measured."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from app_pages import charts, run, said, words

from ui.server import catalogue, measured

PAGE = "pages/training.py"

opened = partial(run, PAGE, model="random", text="one two", view="cost")


def shipped() -> dict:
    found = measured.shipped(measured.COST)
    assert found is not None
    return found


def line(chart: dict, name: str) -> dict:
    return next(each for each in chart["data"] if each["name"].startswith(name))


@pytest.mark.parametrize(("d", "nearest"), [("64", "64"), ("80", "64"), ("2048", "512")])
def test_the_lines_are_those_of_the_nearest_measured_width(d: str, nearest: str):
    times, memory, _ = charts(opened(width=d))
    found = shipped()["widths"][nearest]
    assert line(times, "recurrent")["y"] == found["recurrent"]["milliseconds"]
    assert line(times, "self-attention (fused)")["y"] == found["attention"]["milliseconds"]
    assert line(memory, "self-attention (written out)")["y"] == found["written"]["megabytes"]


def test_table_1_stands_beside_the_measured_exponents_with_their_intervals():
    found = shipped()["widths"]["256"]["recurrent"]["time"]
    told = words(opened(width="256"))
    assert r"$O(n \cdot d^2)$" in told
    assert f"$n^{{{found['value']:.2f}}}$ ({found['low']:.2f} to {found['high']:.2f})" in told
    lengths = [n for n in shipped()["lengths"] if n >= shipped()["fitted_from"]]
    assert f"({len(lengths)} lengths)" in told.replace("\\", "")


def test_the_counted_operations_meet_where_n_is_d():
    *_, chart = charts(opened(width="96"))
    square, recurrent = line(chart, "self-attention"), line(chart, "recurrent")
    place = square["x"].index(96)
    assert square["y"][place] == recurrent["y"][place] == 96**3
    assert chart["layout"]["shapes"][0]["x0"] == 96


def test_the_slider_writes_the_address():
    at = opened()
    at.slider[0].set_value(128).run()
    assert not at.exception
    assert at.query_params["width"] == "128"
    assert "d = 128" in words(at)


def test_without_a_measurement_one_sentence_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(catalogue, "ROOT", tmp_path)
    at = opened()
    assert "lab cost" in said(at)
    assert not charts(at)


def test_a_damaged_measurement_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(catalogue, "ROOT", tmp_path)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "cost.json").write_text("[")
    assert "cost" in said(opened())


def test_one_pass_is_compared_with_one_pass_per_token():
    at = run(PAGE, model="random", text="one two", target="eins zwei")
    ways = shipped()["decoding"]["ways"]
    chart = charts(at)[-1]
    assert line(chart, "all at once")["y"] == ways["parallel"]["milliseconds"]
    ratio = ways["cached"]["milliseconds"][-1] / ways["parallel"]["milliseconds"][-1]
    assert f"**{ratio:.1f} times**" in words(at)
