"""A long piece of work in the background, shared by all visitors who wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar

import streamlit as st

from ui.address import session

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
    """Turns to compute, given in the order of asking."""

    def __init__(
        self,
        at_once: int = AT_ONCE,  # most turns at the same time
    ) -> None:
        self._at_once, self._line, self._moved = at_once, list[object](), threading.Condition()

    @contextmanager
    def turn(
        self,
        who: object,  # the work
        waits: Callable[[int], object],  # hears how much work waits before this, and gives up by raising
    ) -> Iterator[None]:
        """Waits for a turn, and takes it while what is inside computes."""
        with self._moved:
            self._line.append(who)
        try:
            while (before := self.before(who)) is not None:
                waits(before)
                with self._moved:
                    self._moved.wait_for(lambda: self.before(who) is None, _TELLS)
            yield
        finally:
            with self._moved:
                self._line.remove(who)
                self._moved.notify_all()

    def before(self, who: object) -> int | None:
        """Number of pieces of work that wait before one; None if it does not wait."""
        with self._moved:
            waiting = self._line[self._at_once :]
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


class Run(Generic[Result]):
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

    def wait(self, visitor: str) -> bool:
        """Whether the work goes on for a visitor who has not left; starts it if it is not running."""
        with self._lock:
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
            with suppress(_LeftError):
                while self._work is not None and self._waiting:
                    with self._turns.turn(self, self._check):
                        self._read_on()
        except Exception as error:  # tell the visitor, who would otherwise wait for ever
            self.failed = f"The {self._name} stopped: {error}"
        finally:
            with self._lock:
                self._thread = None

    def _check(self, _: int) -> None:
        if not self._waiting:
            raise _LeftError

    def _read_on(self) -> None:
        """Reads on to the end, or, if other work waits, one sentence: others may be shorter."""
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
                self.failed = "All these sentences are too long for the model: open a file with shorter ones."


class _Seat:
    """The piece of work that a session waits for, one at a time."""

    def __init__(
        self,
        visitor: str,  # the name of the session
    ) -> None:
        self._visitor = visitor
        self._run: Run[Any] | None = None

    def take(self, run: Run[Any] | None) -> None:
        """Waits for some work, and for nothing else."""
        if self._run is not None and self._run is not run:
            self._run.away(self._visitor)
        self._run = run


@st.cache_resource(scope="session", on_release=lambda seat: seat.take(None), show_spinner=False)
def _seat(visitor: str) -> _Seat:
    return _Seat(visitor)


def stays(run: Run[Any]) -> bool:
    """Whether work goes on for the present visitor, who leaves it when the session ends."""
    if not run.wait(session.visitor()):
        return False
    _seat(session.visitor()).take(run)
    return True
