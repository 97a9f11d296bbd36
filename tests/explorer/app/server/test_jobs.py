from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from waiting import until

from explorer.app.server.jobs import Job, Tell
from explorer.app.server.queue import FairQueue, place
from explorer.app.server.surveys import survey_job
from explorer.lenses.heads.survey import Line
from transformer.translator import Translator

LINES = [Line("one two three")] * 40


@pytest.fixture
def turns() -> FairQueue:
    return FairQueue(1)


def turn_of_others(turns: FairQueue) -> ExitStack:
    """A turn that others take until it is closed."""
    taken = ExitStack()
    taken.enter_context(turns.turn(object(), pytest.fail))
    return taken


def counting(
    name: str, log: list[str], turns: FairQueue, part: Callable[[], object] = lambda: None
) -> Job[str]:
    """Work of two parts that notes its name in a list."""
    left = iter((1, 2))

    def work(tell: Tell) -> None:
        for number in left:
            log.append(name)
            part()
            tell(number)

    return Job("counting", 2, work, lambda: name, turns)


def test_work_is_done_in_the_order_of_asking_one_part_each_and_knows_its_place(turns: FairQueue) -> None:
    log: list[str] = []
    taken = turn_of_others(turns)
    queue = [counting(own, log, turns) for own in "abc"]
    for number in range(3):
        assert queue[number].wait("somebody")
        until(lambda: turns.count() == (1, number + 1))  # noqa: B023
    assert [run.place for run in queue] == [place(number) for number in range(3)]
    assert turns.count() == (1, 3)
    queue[0].leave("somebody")
    until(lambda: queue[1].place == place(0))
    assert queue[2].place == "Second in the queue: 1 other computation is before yours."
    taken.close()
    until(lambda: not queue[2].running)
    assert log == ["b", "c", "b", "c"]
    assert not queue[2].place
    assert turns.count() == (0, 0)


def test_only_so_much_computes_at_once_as_there_are_turns() -> None:
    turns = FairQueue(2)
    with turns.turn("a", pytest.fail), turns.turn("b", pytest.fail):
        assert turns.count() == (2, 0)
        with pytest.raises(ZeroDivisionError), turns.turn("c", lambda _: 1 // 0):
            pass
        assert turns.count() == (2, 0)
    assert turns.count() == (0, 0)


def test_a_visitor_with_many_tabs_does_not_stand_before_the_first_work_of_others() -> None:
    turns, order = FairQueue(1), list[str]()
    taken = turn_of_others(turns)

    def work(visitor: str, name: str) -> None:
        with turns.turn(name, lambda _: None, visitor):
            order.append(name)

    asked = [("one", "a"), ("one", "b"), ("one", "c"), ("other", "d"), ("", "e"), ("", "f"), ("other", "g")]
    threads = [threading.Thread(target=work, args=each) for each in asked]
    for number, each in enumerate(threads):
        each.start()
        until(lambda: turns.count() == (1, number + 1))  # noqa: B023
    told = sorted("abcdefg", key=turns.before)  # type: ignore[arg-type]
    taken.close()
    for each in threads:
        each.join()
    assert order == told == ["a", "d", "e", "f", "b", "g", "c"]


def test_who_comes_back_while_the_work_ends_finds_it_going_on(turns: FairQueue) -> None:
    log: list[str] = []
    run = counting("a", log, turns, lambda: run.away("one"))
    for _ in range(20):
        if not run.wait("one"):
            break
        until(lambda: not run.running)
    assert log == ["a", "a"]
    assert run.result() == "a"


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (0, "First in the queue: the next free turn is yours."),
        (2, "Third in the queue: 2 other computations are before yours."),
        (11, "Number 12 in the queue: 11 other computations are before yours."),
    ],
)
def test_a_place_is_one_sentence(before: int, told: str) -> None:
    assert place(before) == told


def test_who_was_away_waits_again_and_who_left_does_not(turns: FairQueue) -> None:
    log: list[str] = []
    taken = turn_of_others(turns)
    run = counting("a", log, turns)
    assert run.wait("one")
    assert run.wait("other")
    run.away("one")
    assert run.running
    run.away("other")
    until(lambda: not run.running)
    assert turns.count() == (1, 0)
    taken.close()
    assert run.wait("one")
    until(lambda: run.done == 2)


def test_work_stops_after_its_present_part_when_the_last_one_is_away(turns: FairQueue) -> None:
    log: list[str] = []
    run = counting("a", log, turns, lambda: run.away("one"))
    assert run.wait("one")
    until(lambda: not run.running)
    assert (log, run.done) == (["a"], 1)


def test_a_run_is_read_once_for_all_who_wait(translator: Translator, turns: FairQueue) -> None:
    run = survey_job(translator, LINES, (), turns)
    assert run.wait("a")
    until(lambda: not run.wait("b"))
    assert not run.wait("a")
    survey = run.result()
    assert survey is not None
    assert len(survey.lines) == run.done == run.total == 40
    assert run.result() is survey


def test_a_run_stops_only_when_nobody_waits_any_more(translator: Translator, turns: FairQueue) -> None:
    taken = turn_of_others(turns)
    run = survey_job(translator, LINES, (), turns)
    assert run.wait("a")
    assert run.wait("b")
    run.leave("a")
    assert not run.wait("a")
    taken.close()
    until(lambda: not run.wait("b"))
    assert run.done == 40


def test_a_stopped_run_goes_on_where_it_stopped(translator: Translator, turns: FairQueue) -> None:
    taken = turn_of_others(turns)
    run = survey_job(translator, LINES, (), turns)
    assert run.wait("a")
    run.leave("a")
    taken.close()
    until(lambda: not run.running)
    assert run.done < 40
    assert not run.wait("a")
    run.go_on("a")
    until(lambda: not run.wait("a"))
    assert run.done == 40


def test_sentences_that_no_model_can_read_end_in_a_sentence(translator: Translator, turns: FairQueue) -> None:
    run = survey_job(translator, [Line("one " * 2000)], (), turns)
    until(lambda: not run.wait("a"))
    assert "too long" in run.failed
    assert run.result() is None


def test_an_error_ends_the_waiting(translator: Translator, turns: FairQueue) -> None:
    run = survey_job(translator, [Line(None)], (), turns)  # type: ignore[arg-type]
    until(lambda: not run.wait("a"))
    assert run.failed.startswith("The survey stopped")
