"""Who computes when: turns of browsers, work that visitors share, searches that end with their
visitor."""

import gc
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from sources import named
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx
from waiting import until

from explorer.app.address.state import State
from explorer.app.server import loading, models, queue, runs
from explorer.app.server.jobs import Job, Tell
from explorer.app.server.loading import Loading
from explorer.app.server.queue import FairQueue, place
from explorer.app.server.run_key import USUAL, Drawing, RunKey
from explorer.app.server.surveys import survey_job
from explorer.lenses.heads.survey import Line
from transformer import Sampling
from transformer.decoding import SearchRules

# --- the queue -----------------------------------------------------------------------------------


class Pages:
    """Runs of a queue in threads of their own, each until it is ended; its first letter is its
    browser."""

    def __init__(self, turns: FairQueue) -> None:
        self.turns = turns
        self.ran = list[str]()
        self._gates = dict[str, threading.Event]()

    def _asked(self) -> int:
        return len(self.turns._waiting) + len(self.ran)

    def start(self, name: str) -> None:
        """Returns when the run waits or computes."""
        gate = self._gates.setdefault(name, threading.Event())
        before = self._asked()

        def run() -> None:
            with self.turns.turn(name, browser=name[0]):
                self.ran.append(name)
                gate.wait()

        threading.Thread(target=run, daemon=True).start()
        until(lambda: self._asked() > before)

    def end(self, name: str) -> None:
        self._gates[name].set()


@pytest.mark.parametrize(
    ("at_once", "alone", "names", "order"),
    [
        (2, True, "a1 a2 a3 b1", "a1 b1 a2 a3"),  # two tabs of a browser never compute at once
        (1, True, "a1 a2 a3 b1 c1", "a1 b1 c1 a2 a3"),  # browsers come by turns
        (1, True, "a1 b1 b2 a2 c1", "a1 b1 c1 a2 b2"),
        (3, True, "a1 b1 c1 d1", "a1 b1 c1 d1"),
        (1, False, "a1 a2 a3 b1 b2", "a1 b1 a2 b2 a3"),
    ],
)
def test_runs_compute_in_turn(at_once: int, alone: bool, names: str, order: str) -> None:
    pages = Pages(FairQueue(at_once, alone=alone))
    expected = order.split()
    for name in names.split():
        pages.start(name)
    until(lambda: len(pages.ran) == min(at_once, len({name[0] for name in expected})))
    for count, name in enumerate(expected, start=1):
        until(lambda count=count: len(pages.ran) >= count)
        pages.end(name)
    assert pages.ran == expected
    until(lambda: pages.turns.count() == (0, 0))


def test_a_turn_is_given_back_whatever_happens_and_a_run_that_only_waits_lets_others_compute() -> (
    None
):
    two = FairQueue(2)
    with two.turn("a", pytest.fail), two.turn("b", pytest.fail):
        assert two.count() == (2, 0)
        with pytest.raises(ZeroDivisionError), two.turn("c", lambda _: 1 // 0):
            pass
        assert two.count() == (2, 0)
    pages = Pages(FairQueue(1, alone=True))
    with (
        pages.turns.paused(),
        pages.turns.turn("a", browser="a"),
    ):  # outside of a run nothing is paused
        pages.start("a2")
        pages.start("b1")
        assert pages.ran == []
        with pages.turns.paused():
            until(lambda: pages.ran == ["b1"])
        assert pages.ran == ["b1"]  # it computes, although b1 does
    pages.end("b1")
    until(lambda: pages.ran == ["b1", "a2"])
    pages.end("a2")


@pytest.mark.parametrize(("cookie", "alone"), [("one", True), ("", False)])
def test_every_run_of_streamlit_waits_for_its_turn(cookie: str, alone: bool, monkeypatch) -> None:
    both = threading.Barrier(2, timeout=0.3 if alone else 60)
    gate = list[Callable[[], object]]()

    def run(runner: object, data: object) -> None:
        try:
            both.wait()
            gate.append(both.reset)
        except threading.BrokenBarrierError:
            pass

    monkeypatch.setattr(ScriptRunner, "_run_script", run)
    monkeypatch.setattr(queue.session, "cookie", lambda: cookie)
    for _ in range(2):
        queue.begin.__wrapped__()
    threads = [
        threading.Thread(target=ScriptRunner._run_script, args=(SimpleNamespace(), None))
        for _ in range(2)
    ]
    with ExitStack() as stack:
        for thread in threads:
            thread.start()
            stack.callback(thread.join)
    assert len(gate) == (0 if alone else 2)


def test_a_place_is_one_sentence() -> None:
    assert place(0) == "The next free turn is yours."
    assert place(1) == "Number 2 in the queue: 1 other computation is before yours."
    assert place(11) == "Number 12 in the queue: 11 other computations are before yours."


# --- shared work ---------------------------------------------------------------------------------


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


def test_work_is_done_in_the_order_of_asking_one_part_each_and_knows_its_place(
    turns: FairQueue,
) -> None:
    log: list[str] = []
    taken = turn_of_others(turns)
    jobs = [counting(name, log, turns) for name in "abc"]
    for number, job in enumerate(jobs):
        assert job.wait("somebody")
        until(lambda: turns.count() == (1, number + 1))  # noqa: B023
    assert [job.place for job in jobs] == [place(number) for number in range(3)]
    jobs[0].leave("somebody")
    until(lambda: [job.place for job in jobs] == ["", place(0), place(1)])
    taken.close()
    until(lambda: not jobs[2].running)
    assert log == ["b", "c", "b", "c"]
    assert (jobs[2].place, turns.count()) == ("", (0, 0))


def test_who_was_away_waits_again_and_work_ends_after_its_present_part_when_the_last_one_is(
    turns,
) -> None:
    log: list[str] = []
    taken = turn_of_others(turns)
    job = counting("a", log, turns)
    assert job.wait("one")
    assert job.wait("other")
    job.leave("one", stops=False)
    assert job.running
    job.leave("other", stops=False)
    until(lambda: not job.running)
    assert turns.count() == (1, 0)
    taken.close()
    job.leave("one")
    assert not job.wait("one")
    job.ask("one")
    assert job.wait("one")
    until(lambda: job.done == 2)
    job = counting("b", log, turns, lambda: job.leave("one", stops=False))
    assert job.wait("one")
    until(lambda: not job.running)
    assert (log, job.done) == (["a", "a", "b"], 1)
    while job.wait("one"):  # who comes back while the work ends finds it going on
        until(lambda: not job.running)
    assert (log[2:], job.result(), job.complete) == (["b", "b"], "b", True)


@pytest.mark.parametrize(
    ("line", "text"), [("one " * 2000, "too long"), (None, "The survey stopped: ")]
)
def test_what_no_model_can_read_ends_the_waiting_in_a_sentence(
    translator, turns, line, text: str
) -> None:
    job = survey_job(translator, [Line(line)], (), turns)
    until(lambda: not job.wait("a"))
    assert text in job.failed
    assert (job.result(), job.complete, job.wanted_by("a")) == (None, False, False)
    job.ask("a")
    assert job.wanted_by("a")


# --- searches ------------------------------------------------------------------------------------

ASKED = RunKey(named("random"), "one two three", "beam-3", None)


class LeftError(BaseException):
    """How the run of a page ends when its visitor leaves."""


@dataclass
class Leaving:
    """A visitor who leaves at the third token, or as soon as there is a queue."""

    heard: list[str] = field(default_factory=list)

    def __call__(self, share: float, text: str) -> None:
        self.heard.append(text.partition(":")[0])
        if share == 0 or len(self.heard) == 3:
            raise LeftError


def test_a_search_ends_with_its_visitor_and_only_a_long_one_waits(
    translator, turns, monkeypatch
) -> None:
    monkeypatch.setattr(runs, "turns", turns)
    monkeypatch.setattr(runs, "LONG_SEARCH", 0)
    visitors = [Leaving(), Leaving()]
    with pytest.raises(LeftError):
        runs.search(translator, ASKED, translator.rules, visitors[0])
    assert turns.count() == (0, 0)
    with turn_of_others(turns), pytest.raises(LeftError):
        runs.search(translator, ASKED, translator.rules, visitors[1])
    written = ["1 token so far", "2 tokens so far", "3 tokens so far"]
    assert [visitor.heard for visitor in visitors] == [written, ["The next free turn is yours."]]
    assert turns.count() == (0, 0)
    assert runs.search(translator, ASKED, translator.rules).tree is not None
    monkeypatch.setattr(runs, "LONG_SEARCH", 10_000)
    with turn_of_others(turns):
        assert runs.search(translator, ASKED, SearchRules(length_penalty=0.5)).tree is not None


SAMPLED = State(text="one two", decode="sample-3", temperature=1.2, top_k=5, top_p=0.9)


def test_how_samples_are_drawn_belongs_to_what_identifies_a_run_but_only_if_some_are() -> None:
    def identity(**changes: object) -> RunKey:
        return RunKey.of(replace(SAMPLED, **changes), models.find("en-de"), "one two")

    changes = ({}, {"temperature": 0.5}, {"top_k": None}, {"top_p": None})
    others = [identity(**change) for change in changes]
    assert len({*others}) == len({other.key for other in others}) == 4
    for decode in ("greedy", "beam-4"):
        plain = RunKey.of(State(text="one two", decode=decode), models.find("en-de"), "one two")
        assert identity(decode=decode) == plain
        assert plain.drawing == USUAL
    assert Drawing.of(SAMPLED).sampling(3) == Sampling(1.2, 5, 0.9, 3)
    assert Drawing.of(State(decode="sample-3")) == USUAL
    assert str(Drawing(1.2, 1000, 0.9)) == "temperature 1.2, top-k 1,000, top-p 0.9"


# --- loading behind the first picture ------------------------------------------------------------


def test_whoever_waits_waits_for_the_one_loading_in_a_thread_without_a_page() -> None:
    gate = threading.Event()
    threads = []
    waited = []
    model = list[object]()

    def load() -> None:
        threads.append((threading.current_thread(), get_script_run_ctx(suppress_warning=True)))
        gate.wait(20)
        model.append(object())

    behind = Loading(load)
    assert (behind.begun, behind.done, threads) == (False, False, [])
    behind.begin()
    visitors = [
        threading.Thread(target=lambda: (behind.wait(), waited.append(behind.done)))
        for _ in range(4)
    ]
    for visitor in visitors:
        visitor.start()
    assert (behind.begun, behind.done, waited) == (True, False, [])
    gate.set()
    for visitor in visitors:
        visitor.join(20)
    assert waited == [True] * 4
    ((thread, page),) = threads
    assert thread not in {threading.current_thread(), *visitors}
    assert page is None
    assert not any(each is model for each in gc.get_objects()), (
        "it is kept out of garbage collection"
    )


def test_a_damaged_model_is_left_to_whoever_asks_for_it_and_a_missing_library_is_told_to_all(
    monkeypatch,
):
    def load() -> None:
        raise ValueError("damaged")

    behind = Loading(load)
    behind.wait()
    assert behind.done
    monkeypatch.setattr(loading, "LIBRARIES", ("no_such_library",))
    behind = Loading(lambda: None)
    for _ in range(2):
        with pytest.raises(ImportError, match="no_such_library"):
            behind.wait()
