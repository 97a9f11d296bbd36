"""Lets the program that started a run pause, continue and end it; the run ends when that program ends."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress

STANDARD_INPUT = 0
PAUSE, GO_ON, STOP = b"pause", b"go on", b"stop"
"""The lines that a run obeys."""
_LOOK = 0.2
"""Seconds between two checks of a paused run for a signal that stops it."""


class RunControl:
    """A run under control: it obeys lines, and stops when nothing more can come.

    A program that starts a run keeps the other end of a pipe open, and the system closes it with the program,
    however that ends. (A process that a signal has stopped could not notice.)
    """

    def __init__(self) -> None:
        self._free = threading.Event()
        self._free.set()

    def hold(self, stop: Callable[[], None], descriptor: int = STANDARD_INPUT) -> threading.Thread:
        """Obeys the lines of a file in a thread of its own; calls ``stop`` after ``STOP``, or at its end."""
        thread = threading.Thread(target=self._obey, args=(stop, descriptor), daemon=True)
        thread.start()
        return thread

    def _obey(self, stop: Callable[[], None], descriptor: int) -> None:
        with suppress(OSError), os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
            while (line := file.readline(64)) and line.strip() != STOP:
                if line.strip() == PAUSE:
                    self._free.clear()
                elif line.strip() == GO_ON:
                    self._free.set()
        stop()
        self._free.set()

    def wait(self, stopped: Callable[[], bool]) -> None:
        """Returns once the run is not held, or was stopped."""
        while not stopped() and not self._free.wait(_LOOK):
            pass
