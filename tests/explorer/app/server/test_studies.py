"""The documents of Findings: each can be read whole, says who measured it, and where its program is."""

from __future__ import annotations

import re

import pytest

from explorer.app.server import studies


@pytest.mark.parametrize("name", studies.known())
def test_a_document_can_be_read_and_says_where_its_numbers_come_from(name: str) -> None:
    study = studies.study(name)
    assert study.question.endswith("?")
    assert study.finding.endswith(".")
    charts = [part for part in study.parts if isinstance(part, studies.Chart)]
    assert charts
    for chart in charts:
        assert {len(row) for row in chart.rows} == {len(chart.columns)}, chart.caption
        assert chart.kind == "table" or chart.alt
    program = re.fullmatch(
        r"The program is in the history: commit 97108b2d, `python -m lab (\S+)`\.", study.program
    )
    assert program is not None
    assert all(re.fullmatch(r"2026-11-\d\d", date) for date, _ in study.commands)
    assert any(program[1] in command for _, command in study.commands)


def test_a_document_that_nobody_shipped_is_not_there() -> None:
    with pytest.raises(KeyError):
        studies.study("nothing/heads")
