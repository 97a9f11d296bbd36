"""The queue of what pages compute: a whole run of a page at a time, and of each browser one at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import count
from typing import Any

from streamlit.runtime.scriptrunner.script_runner import ScriptRunner

from explorer.app.address import session

AT_ONCE = 4
"""Most runs of pages that compute at the same time, each of another browser."""


@dataclass(eq=False)
class _PageRun:
    """A run of a page that waits."""

    browser: str
    since: int  # when its browser asked, or was last served: whoever waits longest is next


class PageQueue:
    """Lets runs of pages compute, of each browser one at a time, and of browsers by turns."""

    def __init__(
        self,
        at_once: int = AT_ONCE,  # most runs at the same time
    ) -> None:
        self._free, self._ticks, self._moved = at_once, count(), threading.Condition()
        self._waiting: list[_PageRun] = []
        self._served: set[str] = set()  # the browsers of which a run computes
        self._here = threading.local()

    @contextmanager
    def turn(self, browser: str) -> Iterator[None]:
        """Waits until a run may compute; it is over when what is inside ends."""
        with self._moved:
            run = _PageRun(browser, next(self._ticks))
            self._waiting.append(run)
            self._moved.wait_for(lambda: self._next() is run)
            self._waiting.remove(run)
            self._served.add(browser)
            self._take(1)
        self._here.computes = True
        try:
            yield
        finally:
            self._here.computes = False
            with self._moved:
                self._served.remove(browser)
                tick = next(self._ticks)
                for each in self._waiting:
                    each.since = tick if each.browser == browser else each.since
                self._take(-1)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Lets another browser compute while the present run of a page only waits for something."""
        if not getattr(self._here, "computes", False):
            yield
            return
        self._take(-1)
        try:
            yield
        finally:  # at once: who waits here could hold what those who compute need
            self._take(1)

    def _take(self, places: int) -> None:
        with self._moved:
            self._free -= places
            self._moved.notify_all()

    def _next(self) -> _PageRun | None:
        able = [each for each in self._waiting if each.browser not in self._served] if self._free > 0 else []
        return min(able, key=lambda each: each.since, default=None)


pages = PageQueue()


def begin() -> None:
    """Lets every run of a page and of its parts wait for its turn, from the next one on."""
    run = ScriptRunner._run_script
    if hasattr(run, "__wrapped__"):
        return

    @wraps(run)
    def queued(runner: ScriptRunner, asked: Any) -> None:
        with pages.turn(session.cookie() or str(id(runner))):
            run(runner, asked)

    ScriptRunner._run_script = queued  # type: ignore[method-assign, assignment]
