"""Pages of a hosted instance: what is refused is said, what was typed stays, and no text is logged."""

import json

import pytest
from app_pages import run

from transformer.hub.settings import HOSTED_VARIABLE

LONG = "one " * 200


@pytest.fixture(autouse=True)
def on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTED_VARIABLE, "on")


def said(at: object) -> str:
    return " ".join(each.value for each in [*at.error, *at.info])  # type: ignore[attr-defined]


def test_a_page_refuses_a_long_text_and_keeps_it_in_the_box() -> None:
    at = run(text=LONG)
    assert "at most 300" in said(at)
    assert at.text_input[0].value == LONG


def test_the_log_has_a_line_of_json_per_run_and_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    run(text="one two five", changes="hide_1")
    out = capsys.readouterr().out
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert {line["event"] for line in lines} >= {"page", "translated"}
    page = next(line for line in lines if line["event"] == "page")
    assert (page["page"], page["characters"], page["changes"]) == ("app", 12, 1)
    assert "one two" not in out
