from __future__ import annotations

import threading

import pytest
from waiting import until

from lab.heads.survey import Line
from transformer.runs.translator import Translator
from ui.server.background.run import Run
from ui.server.background.surveys import SurveyWork

LINES = [Line("one two three")] * 40


@pytest.fixture
def turns() -> threading.Semaphore:
    return threading.Semaphore(1)


def test_a_run_is_read_once_for_all_who_wait(translator: Translator, turns: threading.Semaphore) -> None:
    run = Run(SurveyWork(translator, LINES, ()), turns)
    assert run.wait("a")
    until(lambda: not run.wait("b"))
    assert not run.wait("a")
    survey = run.result()
    assert survey is not None
    assert len(survey.lines) == run.read == run.total == 40
    assert run.result() is survey


def test_a_run_stops_only_when_nobody_waits_any_more(
    translator: Translator, turns: threading.Semaphore
) -> None:
    turns.acquire()
    run = Run(SurveyWork(translator, LINES, ()), turns)
    assert run.wait("a")
    assert run.wait("b")
    run.leave("a")
    assert not run.wait("a")
    turns.release()
    until(lambda: not run.wait("b"))
    assert run.read == 40


def test_a_stopped_run_goes_on_where_it_stopped(translator: Translator, turns: threading.Semaphore) -> None:
    turns.acquire()
    run = Run(SurveyWork(translator, LINES, ()), turns)
    assert run.wait("a")
    run.leave("a")
    turns.release()
    until(lambda: not run.running)
    assert run.read < 40
    assert not run.wait("a")
    run.go_on("a")
    until(lambda: not run.wait("a"))
    assert run.read == 40


def test_sentences_that_no_model_can_read_end_in_a_sentence(
    translator: Translator, turns: threading.Semaphore
) -> None:
    run = Run(SurveyWork(translator, [Line("one " * 2000)], ()), turns)
    until(lambda: not run.wait("a"))
    assert "too long" in run.failed
    assert run.result() is None


def test_an_error_ends_the_waiting(translator: Translator, turns: threading.Semaphore) -> None:
    run = Run(SurveyWork(translator, [Line(None)], ()), turns)  # type: ignore[arg-type]
    until(lambda: not run.wait("a"))
    assert run.failed.startswith("The survey stopped")
