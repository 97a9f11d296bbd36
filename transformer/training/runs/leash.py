"""Ends a run when the program that began it ends, however that one ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

STANDARD_INPUT = 0


def at_end_of_input(stop: Callable[[], None], descriptor: int = STANDARD_INPUT) -> threading.Thread:
    """Calls a function once nothing more can come from a file, in a thread of its own.

    A program that starts a run keeps the other end of a pipe open, and the system closes it with the program.
    """

    def wait() -> None:
        with suppress(OSError):
            while os.read(descriptor, 4096):
                pass
        stop()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread
