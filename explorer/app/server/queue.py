"""The fair queue of what the server computes: whole runs of pages, and long work.

Browsers come by turns.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, wraps
from itertools import count

from streamlit.runtime.scriptrunner import RerunData
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner

from explorer.app.address import session

PAGES_AT_ONCE, AT_ONCE = 4, 2
"""Most runs of pages, each of another browser, and most pieces of long work that compute at the
same time."""
_TELLS = 0.2
"""Seconds after which whoever waits for a turn hears of its place."""


@dataclass(eq=False)
class _Turn:
    who: object  # the work
    browser: object
    since: int  # when its browser asked, or was last served: whoever waits longest is next


@dataclass(eq=False)
class FairQueue:
    """Turns to compute.

    The next one is of the browser that has waited longest since it was served.
    """

    free: int  # turns that nobody has: at first, most turns at the same time
    alone: bool = False  # whether a browser has at most one turn at a time
    _ticks: Iterator[int] = field(default_factory=count)
    _moved: threading.Condition = field(default_factory=threading.Condition)
    _here: threading.local = field(default_factory=threading.local)
    _waiting: list[_Turn] = field(default_factory=list)
    _computing: list[_Turn] = field(default_factory=list)

    @contextmanager
    def turn(
        self,
        who: object,  # the work
        waits: Callable[[int], object]
        | None = None,  # hears how much is before it; gives up by raising
        # whose work it is; empty if nobody's: then it is the only one of its browser
        browser: str = "",
    ) -> Iterator[None]:
        """Waits for a turn, and takes it while what is inside computes."""
        mine = _Turn(who, browser or object(), next(self._ticks))
        with self._moved:
            self._waiting.append(mine)
        try:
            seconds = None if waits is None else 0.0
            while not self._takes(mine, seconds):
                if waits is not None and (before := self.before(who)) is not None:
                    waits(before)
                seconds = _TELLS
            self._here.computes = True
            yield
        finally:
            self._here.computes = False
            with self._moved:
                if mine in self._waiting:
                    self._waiting.remove(mine)
                else:
                    self._computing.remove(mine)
                    self.free += 1
                    tick = next(self._ticks)
                    for turn in self._waiting:
                        turn.since = tick if turn.browser == mine.browser else turn.since
                self._moved.notify_all()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Lets another browser compute while the present turn only waits for something."""
        computes = getattr(self._here, "computes", False)
        with self._moved:
            self.free += computes
            self._moved.notify_all()
        try:
            yield
        finally:  # at once: who waits here could hold what those who compute need
            with self._moved:
                self.free -= computes
                self._moved.notify_all()

    def before(self, who: object) -> int | None:
        """Number of pieces of work that wait before one; None if it does not wait."""
        with self._moved:
            earlier = Counter(turn.browser for turn in self._computing)
            rounds = list[tuple[int, object]]()
            for waiting in sorted(self._waiting, key=lambda turn: turn.since):
                rounds.append((earlier[waiting.browser], waiting.who))
                earlier[waiting.browser] += 1
        order = [turn for _, turn in sorted(rounds, key=lambda pair: pair[0])]
        return order.index(who) if who in order else None

    def count(self) -> tuple[int, int]:
        """Number of pieces of work that compute, and that wait."""
        with self._moved:
            return len(self._computing), len(self._waiting)

    def _takes(self, mine: _Turn, seconds: float | None) -> bool:
        with pages.paused() if seconds else nullcontext(), self._moved:
            if not self._moved.wait_for(lambda: self._next() is mine, seconds):
                return False
            self._waiting.remove(mine)
            self._computing.append(mine)
            self.free -= 1
            self._moved.notify_all()
            return True

    def _next(self) -> _Turn | None:
        busy = {turn.browser for turn in self._computing} if self.alone else set()
        able = [turn for turn in self._waiting if turn.browser not in busy] if self.free > 0 else []
        return min(able, key=lambda each: each.since, default=None)


pages = FairQueue(PAGES_AT_ONCE, alone=True)
turns = FairQueue(AT_ONCE)


def place(before: int) -> str:
    """A place in the queue, as pages say it."""
    if not before:
        return "The next free turn is yours."
    before_this = "1 other computation is" if before == 1 else f"{before} other computations are"
    return f"Number {before + 1} in the queue: {before_this} before yours."


@cache
def begin() -> None:
    """Lets every run of a page and of its parts wait for its turn, from the next one on."""
    run = ScriptRunner._run_script
    if hasattr(run, "__wrapped__"):
        return

    @wraps(run)
    def queued(runner: ScriptRunner, request: RerunData) -> None:
        with pages.turn(runner, browser=session.cookie()):
            run(runner, request)

    ScriptRunner._run_script = queued  # type: ignore[method-assign, assignment]
