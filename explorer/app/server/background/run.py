"""A long piece of work in the background, shared by all visitors who wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.app.address import session
from explorer.app.server.hosting.queue import pages

AT_ONCE = 2
"""Most pieces of work that compute at the same time; others wait for their turn."""
_TELLS = 0.2
"""Seconds after which whoever waits for a turn hears of its place."""
_ORDINALS = ("First", "Second", "Third", "Fourth", "Fifth")

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")


class Work(Protocol[Result_co]):
    """Work on many sentences."""

    @property
    def name(self) -> str:
        """Sort of the work, such as "survey"."""

    @property
    def total(self) -> int:
        """Number of sentences."""

    def run(self) -> Iterator[int]:
        """Works on one sentence after the other; yields how many are done."""

    def result(self) -> Result_co | None:
        """The result so far; None as long as no sentence could be read."""


class Turns:
    """Turns to compute, given in the order of asking; the second one of a visitor after the first of all."""

    def __init__(
        self,
        at_once: int = AT_ONCE,  # most turns at the same time
    ) -> None:
        self._at_once, self._moved = at_once, threading.Condition()
        self._line: list[
            tuple[object, int, str]
        ] = []  # the work, the round in which its turn comes, the visitor

    @contextmanager
    def turn(
        self,
        who: object,  # the work
        waits: Callable[[int], object],  # hears how much work waits before this, and gives up by raising
        visitor: str = "",  # whose work it is; empty if nobody's: then it is the only one of its visitor
    ) -> Iterator[None]:
        """Waits for a turn, and takes it while what is inside computes."""
        with self._moved:
            nth = sum(bool(visitor) and each == visitor for _, _, each in self._line)
            waiting = self._line[self._at_once :]
            earlier = sum(each <= nth for _, each, _ in waiting)
            self._line.insert(len(self._line) - len(waiting) + earlier, (who, nth, visitor))
        try:
            while (before := self.before(who)) is not None:
                waits(before)
                with pages.paused(), self._moved:
                    self._moved.wait_for(lambda: self.before(who) is None, _TELLS)
            yield
        finally:
            with self._moved:
                self._line = [each for each in self._line if each[0] is not who]
                self._moved.notify_all()

    def before(self, who: object) -> int | None:
        """Number of pieces of work that wait before one; None if it does not wait."""
        with self._moved:
            waiting = [each for each, _, _ in self._line[self._at_once :]]
        return waiting.index(who) if who in waiting else None

    def count(self) -> tuple[int, int]:
        """Number of pieces of work that compute, and that wait."""
        with self._moved:
            asked = len(self._line)
        return min(asked, self._at_once), max(asked - self._at_once, 0)


@st.cache_resource(show_spinner=False)
def turns() -> Turns:
    """The turns of all work, which all visitors share."""
    return Turns()


def place(before: int) -> str:
    """A place in the queue, as pages say it."""
    if before == 0:
        return "First in the queue: the next free turn is yours."
    name = _ORDINALS[before] if before < len(_ORDINALS) else f"Number {before + 1}"
    others = "1 other computation is" if before == 1 else f"{before} other computations are"
    return f"{name} in the queue: {others} before yours."


class _LeftError(Exception):
    """Nobody waits for the work any more."""


class BackgroundRun(Generic[Result]):
    """One piece of work, done in a thread while somebody waits for it, and then kept."""

    def __init__(
        self,
        work: Work[Result],  # what to do
        turns: Turns,  # limits how many runs compute at once; shared by all runs
    ) -> None:
        self.total, self.read, self.failed, self._name = work.total, 0, "", work.name
        self._work: Work[Result] | None = work
        self._reading, self._turns = work.run(), turns
        self._waiting: set[str] = set()
        self._left: set[str] = set()
        self._asked: set[str] = set()
        self._browser = ""  # of the visitor who waited last; its turns are theirs
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._result: Result | None = None

    def ask(self, visitor: str) -> None:
        """Notes that a visitor wants the result."""
        with self._lock:
            self._asked.add(visitor)

    def asked(self, visitor: str) -> bool:
        """Whether a visitor wanted the result, or it is complete because somebody else did."""
        with self._lock:
            return visitor in self._asked or self._result is not None

    def wait(self, visitor: str, browser: str = "") -> bool:
        """Whether the work goes on for a visitor who has not left; starts it if it is not running."""
        with self._lock:
            self._browser = browser
            if visitor in self._left or self._result is not None or self.failed:
                return False
            self._waiting.add(visitor)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
            return True

    @property
    def running(self) -> bool:
        """Whether a thread reads sentences, or waits for its turn to."""
        return self._thread is not None

    @property
    def place(self) -> str:
        """Its place in the queue, in a sentence; empty if it does not wait for its turn."""
        before = self._turns.before(self)
        return "" if before is None else place(before)

    def leave(self, visitor: str) -> None:
        """Removes a visitor; if nobody waits any more, the run stops after its present sentence."""
        with self._lock:
            self._waiting.discard(visitor)
            self._left.add(visitor)

    def away(self, visitor: str) -> None:
        """As `leave`, for a visitor who may come back, and then waits again."""
        with self._lock:
            self._waiting.discard(visitor)

    def go_on(self, visitor: str) -> None:
        """Adds the visitor again; sentences already read are not lost."""
        with self._lock:
            self._left.discard(visitor)

    def result(self) -> Result | None:
        """The result so far; None before the first sentence."""
        with self._lock:
            work = self._work
        return self._result if work is None else work.result()

    def _run(self) -> None:
        try:
            while self._goes_on():
                with suppress(_LeftError), self._turns.turn(self, self._check, self._browser):
                    self._read_on()
        except Exception as error:  # tell the visitor, who would otherwise wait for ever
            with self._lock:
                self.failed, self._thread = f"The {self._name} stopped: {error}", None

    def _goes_on(self) -> bool:
        """Whether somebody waits; if not, the thread is over, and whoever comes back starts another."""
        with self._lock:
            goes = self._work is not None and bool(self._waiting)
            self._thread = self._thread if goes else None
        return goes

    def _check(self, _: int) -> None:
        if not self._waiting:
            raise _LeftError

    def _read_on(self) -> None:
        """Reads on to the end; if other work waits, at least a sentence."""
        done = self.read
        while self._waiting and (self.read == done or not self._turns.count()[1]):
            try:
                self.read = next(self._reading)
            except StopIteration:
                self._finish()
                return

    def _finish(self) -> None:
        result = self.result()
        with self._lock:
            self._result, self._work = result, None
            if result is None:
                self.failed = (
                    "None of these sentences shows anything of the heads: each is too long for the model, or "
                    "its translation is empty. Open a file with others."
                )


class _Seat:
    """The piece of work that a session waits for, one at a time."""

    def __init__(
        self,
        visitor: str,  # the name of the session
    ) -> None:
        self._visitor = visitor
        self._run: BackgroundRun[Any] | None = None
        self._page = ""  # where it was asked for

    def take(self, run: BackgroundRun[Any] | None) -> None:
        """Waits for some work, and for nothing else."""
        if self._run is not None and self._run is not run:
            self._run.away(self._visitor)
        self._run, self._page = run, _page()

    def look(self) -> None:
        """Waits no longer if the visitor is on another page now."""
        if self._page != _page():
            self.take(None)


def _page() -> str:
    context = get_script_run_ctx(suppress_warning=True)
    return "" if context is None else context.page_script_hash


def begin() -> None:
    """Notes that the present visitor opens a page, and no longer waits for what another one asked for."""
    _seat(session.visitor()).look()


@st.cache_resource(scope="session", on_release=lambda seat: seat.take(None), show_spinner=False)
def _seat(visitor: str) -> _Seat:
    return _Seat(visitor)


def stays(run: BackgroundRun[Any]) -> bool:
    """Whether work goes on for the present visitor, who leaves it when the session ends."""
    if not run.wait(session.visitor(), session.browser()):
        return False
    _seat(session.visitor()).take(run)
    return True
