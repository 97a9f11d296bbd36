"""A long piece of work in the background, shared by all visitors who wait for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

import streamlit as st

AT_ONCE = 2
"""Most pieces of work that compute at the same time; others wait for their turn."""

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


@st.cache_resource(show_spinner=False)
def turns() -> threading.Semaphore:
    """Limits how much work computes at once; shared by all of it."""
    return threading.Semaphore(AT_ONCE)


class Run(Generic[Result]):
    """One piece of work, done in a thread while somebody waits for it, and then kept."""

    def __init__(
        self,
        work: Work[Result],  # what to do
        turns: threading.Semaphore,  # limits how many runs compute at once; shared by all runs
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

    def leave(self, visitor: str) -> None:
        """Removes a visitor; if nobody waits any more, the run stops after its present sentence."""
        with self._lock:
            self._waiting.discard(visitor)
            self._left.add(visitor)

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
            with self._turns:
                self._read_on()
        except Exception as error:  # tell the visitor, who would otherwise wait for ever
            self.failed = f"The {self._name} stopped: {error}"
        finally:
            with self._lock:
                self._thread = None

    def _read_on(self) -> None:
        while self._waiting:
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
