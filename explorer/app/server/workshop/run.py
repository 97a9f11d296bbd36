"""One run: its directory, its process, what it may take, and how it ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from explorer.app.server.workshop.child import Child, last_words
from explorer.app.server.workshop.limits import Limits
from explorer.app.server.workshop.plan import Plan
from explorer.app.server.workshop.progress import Curves, Log
from transformer.storage.description import CONFIG_FILE, WEIGHTS_FILE
from transformer.storage.files import read_json, write_json
from transformer.text.pairs import SentencePair
from transformer.training.run import LOG_FILE

RUN = "run"
"""Name of the directory that the process writes, inside the folder of the run."""
PLAN_FILE = "plan.json"
TICK = 0.2
"""Seconds between two looks at what the process takes."""
GRACE = 20
"""Seconds in which a process that was asked to stop may save."""
MB = 1_000_000


@dataclass(frozen=True)
class TrainingOrder:
    """Purpose of a run."""

    plan: Plan  # task and sizes
    shown: SentencePair  # the held-out pair whose maps are shown

    def write(self, folder: Path) -> None:
        """Keeps it beside the run, for a server that starts again."""
        pair = {"source": self.shown.source, "target": self.shown.target}
        write_json(folder / PLAN_FILE, {"plan": self.plan.to_dict(), "shown": pair})

    @classmethod
    def read(cls, folder: Path) -> TrainingOrder:
        """Content that ``write`` kept.

        Raises:
            ValueError: There is no such file, or it is damaged.
        """
        values = read_json(folder / PLAN_FILE)
        try:
            pair = SentencePair(str(values["shown"]["source"]), str(values["shown"]["target"]))
            return cls(Plan.read(values["plan"]), pair)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{PLAN_FILE} is damaged.") from error


class TrainingRun:
    """A run, watched by a thread as long as its process lives.

    Attributes:
        told: How it ended, in one sentence; empty while it runs.
        paused: Whether it was paused.
    """

    def __init__(
        self,
        asked: TrainingOrder,  # what it is for
        folder: Path,  # its folder
        owner: str = "",  # the visitor who began it; empty if nobody knows
    ) -> None:
        self.asked, self.folder, self.owner = asked, folder, owner
        self.told, self.paused, self.began = "", False, time.monotonic()
        self._log, self._why = Log(folder / RUN / LOG_FILE), ""
        self._child: Child | None = None
        self._lock, self._ended = threading.Lock(), threading.Event()

    @property
    def directory(self) -> Path:
        """The model directory that the process writes."""
        return self.folder / RUN

    @property
    def has_model(self) -> bool:
        """Whether there is a checkpoint to look at and to keep."""
        return all((self.directory / name).is_file() for name in (CONFIG_FILE, WEIGHTS_FILE))

    @property
    def pid(self) -> int | None:
        """The process; None before it begins."""
        return None if self._child is None else self._child.pid

    def curves(self) -> Curves:
        """Measurements up to now."""
        return self._log.curves()

    def ended(self, told: str) -> None:
        """Says how a run ended whose process is gone."""
        self.told = told
        self._ended.set()

    def begin(
        self,
        limits: Limits,  # what it may take
        used: Callable[[], int],  # gives the bytes of all files that count
    ) -> None:
        """Starts the process and the thread that watches it.

        Raises:
            OSError: The process cannot be started.
        """
        command = self.asked.plan.arguments(RUN)
        self._child = Child(command, self.folder, int(limits.disk_mb * MB), limits.nice)
        threading.Thread(target=self._watch, args=(self._child, limits, used), daemon=True).start()

    def pause(self) -> None:
        """Holds it where it is."""
        with self._lock:
            if self._child is not None and not self.told and not self._why:
                self._child.pause()
                self.paused = True

    def go_on(self) -> None:
        """Lets it continue."""
        with self._lock:
            if self._child is not None and not self.told:
                self._child.go_on()
                self.paused = False

    def stop(self, why: str = "") -> None:
        """Asks it to save and to end, or ends it at once before it could save; the first reason counts."""
        with self._lock:
            saved = "and saved after its last step" if self.has_model else "before anything was saved"
            self._why = self._why or why or f"Stopped, {saved}."
            self.paused = False
            if self._child is not None:
                (self._child.stop if self.has_model else self._child.kill)()

    def close(self, seconds: float) -> None:
        """Stops it, and ends it at once if it takes longer than some seconds."""
        if self._child is None or self.told:
            return
        self.stop("The server ended, and the run with it.")
        if not self._ended.wait(seconds):
            self._child.kill()

    def wait(self, seconds: float) -> bool:
        """Whether it ends within some seconds."""
        return self._ended.wait(seconds)

    def _watch(self, child: Child, limits: Limits, used: Callable[[], int]) -> None:
        asked: float | None = None
        while (status := child.wait(TICK)) is None:
            if (beyond := self._beyond(child, limits, used)) and not self._why:
                self.stop(beyond)
            if self._why and asked is None:
                asked = time.monotonic()
            if asked is not None and time.monotonic() - asked > GRACE:
                child.kill()
        self.paused = False
        self.ended(self._why or self._verdict(status))

    def _beyond(self, child: Child, limits: Limits, used: Callable[[], int]) -> str:
        """Which limit it exceeds, as a sentence; empty if none."""
        if time.monotonic() - self.began > 60 * limits.minutes:
            return f"Stopped after {limits.minutes:g} minutes, the limit of this server."
        if child.resident > limits.memory_mb * MB:
            return f"Stopped: it took more than {limits.memory_mb:g} MB of memory, the limit of this server."
        if used() > limits.disk_mb * MB:
            return f"Stopped: its files took more than {limits.disk_mb:g} MB, the limit of this server."
        return ""

    def _verdict(self, status: int) -> str:
        if status == 0:
            return f"Finished all {self.asked.plan.steps:,} steps."
        checkpoint = (
            "its last checkpoint is kept" if self.has_model else "it had not saved a checkpoint before"
        )
        if status < 0:
            return f"Its process was ended from outside (signal {-status}); {checkpoint}."
        said = last_words(self.folder).rstrip(".") or f"its process ended with status {status}"
        return f"It failed: {said}; {checkpoint}."
