"""A visitor's share of a hosted server: so much processor time a minute, one computation at a time."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from streamlit.runtime.scriptrunner import get_script_run_ctx

from ui.address import session
from ui.server.hosting.bounds import Bounds

_MINUTE = 60.0
_KNOWN = 10_000
"""Most visitors whose computations are remembered."""
_inside: ContextVar[bool] = ContextVar("inside", default=False)


class LaterError(ValueError):
    """A visitor has used much within a minute, and can ask again soon."""


@dataclass
class _Share:
    spent: deque[tuple[float, float]] = field(default_factory=deque)  # when a computation ended, its seconds
    alone: threading.Lock = field(default_factory=threading.Lock)  # held by the tab that computes


class ProcessorShares:
    """Processor time of each visitor within the last minute."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,  # seconds
    ) -> None:
        self._clock, self._lock, self._of = clock, threading.Lock(), OrderedDict[str, _Share]()

    def of(self, visitor: str) -> _Share:
        """The share of a visitor; the one who computed longest ago is forgotten first."""
        with self._lock:
            share = self._of.setdefault(visitor, _Share())
            self._of.move_to_end(visitor)
            if len(self._of) > _KNOWN:
                self._of.popitem(last=False)
            return share

    def wait(self, share: _Share, most: float) -> float:
        """Seconds until less than ``most`` was spent within a minute; 0 if that is so now."""
        now, left = self._clock(), 0.0
        with self._lock:
            while share.spent and share.spent[0][0] <= now - _MINUTE:
                share.spent.popleft()
            for ended, seconds in reversed(share.spent):
                left += seconds
                if left >= most:
                    return ended + _MINUTE - now
        return 0.0

    def spend(self, share: _Share, seconds: float) -> None:
        """Notes a computation that has just ended."""
        with self._lock:
            share.spent.append((self._clock(), seconds))


shares = ProcessorShares()


def behind(browser: str) -> bool:
    """Whether a visitor's work in the background has used half of the share: the rest is for pages."""
    most = Bounds.from_environment().seconds
    return not math.isinf(most) and shares.wait(shares.of(browser), most / 2) > 0


@contextmanager
def in_background(browser: str) -> Iterator[None]:
    """Counts the processor time of what is inside, in a thread of its own, for a visitor."""
    start = time.thread_time()
    try:
        yield
    finally:
        shares.spend(shares.of(browser), time.thread_time() - start)


@contextmanager
def computing() -> Iterator[None]:
    """Counts the processor time of what is inside for the present visitor, whose other tabs wait meanwhile.

    Whoever takes a turn of the long computations (`ui/server/background/run.py`) is inside already, so no tab
    that has a turn waits here. Nothing is counted on a server that is not hosted, or outside of a page.

    Raises:
        LaterError: the visitor has spent too much; nothing is lost, and the same request succeeds later.
    """
    most = Bounds.from_environment().seconds
    if math.isinf(most) or _inside.get() or get_script_run_ctx(suppress_warning=True) is None:
        yield
        return
    share = shares.of(session.browser())
    with share.alone:
        if wait := shares.wait(share, most):
            raise LaterError(
                f"What you asked for within a minute took {most:g} s of this server's processor, as much as "
                f"it gives one visitor. What you typed stays: ask again in {math.ceil(wait)} s."
            )
        inside, start = _inside.set(True), time.thread_time()
        try:
            yield
        finally:
            _inside.reset(inside)
            shares.spend(share, time.thread_time() - start)
