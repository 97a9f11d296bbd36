"""Every study: its document says what today's data say, with no number that nobody measured."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from lab.documents import measured
from lab.studies import studies
from lab.study import FOLDER, SHIPPED, Chart, Study, digest, documents, read, write
from transformer.storage.files import CheckpointError, read_json

ROOT = Path(__file__).resolve().parents[3]
ALL = [*documents([ROOT / SHIPPED]), *sorted(ROOT.glob(f"assets/models/**/{FOLDER}/*.json"))]
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?")
KNOWN = {95.0}
"""Numbers that no measurement has: the intervals hold 95 %."""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT / "assets").with_suffix(""))


def numbers(value: Any) -> Iterator[float]:
    """Every number in some data, and the length of every list."""
    if isinstance(value, dict | list | tuple):
        yield float(len(value))
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers(each)
        if isinstance(value, dict):
            yield from chain.from_iterable(map(numbers, value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield abs(float(value))
    elif isinstance(value, str):
        yield from (float(each.replace(",", "")) for each in NUMBER.findall(value))


def unknown(text: str, known: set[float]) -> list[str]:
    """The numbers of a text that are none of some others, nor a hundredth of one, rounded as they are."""
    told = re.sub(r"\$.*?\$|`.*?`", "", text, flags=re.DOTALL).replace("−", "-")
    found = []
    for written in NUMBER.findall(told):
        mantissa, _, power = written.partition("e")
        value = float(written.replace(",", ""))
        near = 0.5000001 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
        if not any(abs(factor * each - value) <= near for each in known for factor in (1, 100)):
            found.append(written)
    return found


def test_there_is_a_document_for_all_that_was_measured(monkeypatch):
    monkeypatch.chdir(ROOT)
    wanted = {
        (SHIPPED if each.shipped(data) else data.parent / FOLDER) / f"{name}.json"
        for each in studies()
        for data in measured(each)
        for name in each.studies
    }
    assert wanted == {path.relative_to(ROOT) for path in ALL}


@pytest.mark.parametrize("path", ALL, ids=named)
def test_a_document_opens_and_each_chart_has_rows_of_one_form_and_an_alternative_text(path: Path):
    study = read(path)["study"]
    charts = [each for each in study.parts if isinstance(each, Chart)]
    assert charts
    for chart in charts:
        assert chart.rows, chart.caption
        assert chart.kind == "table" or len(chart.columns) in (3, 5), chart.caption
        assert all(len(row) == len(chart.columns) for row in chart.rows), chart.caption
        assert len(chart.alt) > 20
    assert len({chart.alt for chart in charts}) == len(charts)
    assert all(text.strip() for text in (study.topic, study.question, study.finding, study.method))


def texts(study: Study) -> list[str]:
    found = [study.finding, *(each for each in study.parts if isinstance(each, str))]
    charts = (each for each in study.parts if isinstance(each, Chart))
    return found + [each for chart in charts for each in (chart.caption, chart.alt)]


@pytest.mark.parametrize("path", ALL, ids=named)
def test_a_number_has_a_true_minus_sign_and_a_zero_none(path: Path):
    for text in texts(read(path)["study"]):
        assert not re.search(r"(?<![\w)}\\])-\d|[-−]0(?:\.0+)?(?![.\d])", text), text


@pytest.mark.parametrize("path", ALL, ids=named)
def test_every_number_of_a_text_stands_in_a_chart_or_in_the_data(path: Path):
    study = read(path)["study"]
    data = [read_json(ROOT / file if "/" in file else path.parents[1] / file) for file in read(path)["data"]]
    charts = [each for each in study.parts if isinstance(each, Chart)]
    known = {*numbers(data), *chain.from_iterable(numbers(chart.rows) for chart in charts), *KNOWN}
    assert not [(text, missing) for text in texts(study) if (missing := unknown(text, known))]


def test_a_document_is_what_today_s_code_says_of_today_s_data(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(ROOT)
    for each in studies():
        for data in measured(each):
            found = read_json(data)
            folder = SHIPPED if each.shipped(data) else data.parent / FOLDER
            copy = tmp_path / data.name
            copy.write_bytes(data.read_bytes())
            for name, tell in each.studies.items():
                again = read_json(write(name, tell(found), found, copy, shipped=False))
                stored = read_json(ROOT / folder / f"{name}.json")
                assert list(stored["data"].values()) == [digest(data)], name
                assert {**again, "data": 0} == {**stored, "data": 0}, name


def test_a_number_that_nobody_measured_is_seen():
    assert unknown("It takes 3.7 times as long, in 12 % of 1,024 cases, $n^{9}$.", {3.71, 0.12, 1024}) == []
    assert unknown("It takes 3.8 times as long.", {3.71}) == ["3.8"]


def test_a_file_that_is_no_document_is_named(tmp_path: Path):
    file = tmp_path / "odd.json"
    file.write_text(json.dumps({"topic": "x", "parts": []}))
    with pytest.raises(CheckpointError, match=r"odd\.json is no document"):
        read(file)
