"""Waiting for a condition, with a bound that only a broken program reaches."""

import threading
import time
from collections.abc import Callable


def until(done: Callable[[], bool], most: float = 60) -> None:
    """Waits until a condition holds, at most some seconds."""
    deadline = time.monotonic() + most
    while not done():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
