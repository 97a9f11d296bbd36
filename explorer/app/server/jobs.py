"""Long work in the background, shared by all visitors who wait for it, and then kept."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.app.address import session
from explorer.app.server.queue import FairQueue, place

Result = TypeVar("Result", covariant=True)
Tell = Callable[[int], None]
"""Hears how much is done; ends the work by raising if it has to stop."""


class JobError(Exception):
    """Why work cannot be done, in a sentence for the visitor."""


class _LeftError(Exception):
    """Nobody waits for the work any more, or others wait for a turn."""


@dataclass(eq=False)
class Job(Generic[Result]):
    """One piece of work, done in a thread as long as somebody waits for it.

    Whoever comes back resumes it.
    """

    name: str  # sort of the work, such as "survey"
    total: int  # how much there is to do
    work: Callable[[Tell], object] | None  # does it; called again, it goes on where it stopped
    result: Callable[[], Result | None]  # gives the result so far; None if there is none
    turns: FairQueue  # limits how many compute at once; shared by many
    shares: bool = True  # whether it gives its turn to others between two parts
    done: int = field(init=False, default=0)  # how much of it is done
    failed: str = field(init=False, default="")  # why it failed, in a sentence; empty if it has not
    complete: bool = field(init=False, default=False)  # whether all is done
    _waiting: set[str] = field(init=False, default_factory=set)
    _wanted: dict[str, bool] = field(init=False, default_factory=dict)
    _browser: str = field(
        init=False, default=""
    )  # of the visitor who waited last; its turns are theirs
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _thread: threading.Thread | None = field(init=False, default=None)

    def ask(self, visitor: str) -> None:
        """Notes that a visitor wants the result, for the first time or again.

        What is done is not lost.
        """
        self._wanted[visitor] = True

    def wanted_by(self, visitor: str) -> bool:
        """Whether a visitor wanted the result once, or it is complete because somebody else did."""
        return visitor in self._wanted or self.complete

    def wait(self, visitor: str, browser: str = "") -> bool:
        """Whether the work goes on for a visitor who has not left.

        Starts it if it is not running.
        """
        with self._lock:
            self._browser = browser
            if not self._wanted.get(visitor, True) or self.complete or self.failed:
                return False
            self._waiting.add(visitor)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
            return True

    @property
    def running(self) -> bool:
        """Whether a thread works, or waits for its turn to."""
        return self._thread is not None

    @property
    def place(self) -> str:
        """Its place in the queue, in a sentence; empty if it does not wait for its turn."""
        before = self.turns.before(self)
        return "" if before is None else place(before)

    def leave(self, visitor: str, stops: bool = True) -> None:
        """Removes a visitor; if nobody waits any more, the work stops after its present part.

        Who does not stop may come back, and then waits again.
        """
        with self._lock:
            self._waiting.discard(visitor)
            if stops:
                self._wanted[visitor] = False

    def _run(self) -> None:
        try:
            while (work := self._next()) is not None:
                with suppress(_LeftError), self.turns.turn(self, self._check, self._browser):
                    work(self._tell)
                    self._finish(self.result())
        except Exception as error:  # tell the visitor, who would otherwise wait for ever
            message = (
                str(error) if isinstance(error, JobError) else f"The {self.name} stopped: {error}"
            )
            with self._lock:
                self.failed, self._thread = message, None

    def _finish(self, result: Result | None) -> None:
        self.result = lambda: result
        self.work = None
        self.complete = True

    def _next(self) -> Callable[[Tell], object] | None:
        """The work if somebody waits.

        If not, the thread is over, and whoever comes back starts another.
        """
        with self._lock:
            if self.work is None or not self._waiting:
                self._thread = None
                return None
            return self.work

    def _check(self, _: int) -> None:
        if not self._waiting:
            raise _LeftError

    def _tell(self, done: int) -> None:
        self.done = done
        if not self._waiting or (self.shares and self.turns.count()[1]):
            raise _LeftError


@dataclass
class Seat:
    """The work that a session waits for, one at a time, and the page where it was asked for."""

    visitor: str
    job: Job[object] | None = None
    page: str = ""

    def take(self, job: Job[object] | None) -> None:
        if self.job is not None and self.job is not job:
            self.job.leave(self.visitor, stops=False)
        context = get_script_run_ctx(suppress_warning=True)
        self.job = job
        self.page = "" if context is None else context.page_script_hash


@st.cache_resource(scope="session", on_release=lambda place: place.take(None), show_spinner=False)
def seat(visitor: str) -> Seat:
    return Seat(visitor)


def stays(job: Job[object]) -> bool:
    """Whether work goes on for the present visitor, who leaves it when the session ends."""
    if not job.wait(session.visit().name, session.browser()):
        return False
    seat(session.visit().name).take(job)
    return True
