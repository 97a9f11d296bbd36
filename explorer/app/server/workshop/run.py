"""One run of training here: its process, what that may take, its curves, its held-out pair, its end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import streamlit as st
from safetensors import safe_open

from explorer.app.server.hosted import Limits
from explorer.app.server.workshop.plan import TrainingOrder
from transformer import Translation, Translator
from transformer.config import AttentionKind, Head
from transformer.storage.description import CONFIG_FILE, WEIGHTS_FILE
from transformer.storage.directory import load_checkpoint
from transformer.training.control import GO_ON, PAUSE, STOP
from transformer.training.log import read_step
from transformer.training.run import LOG_FILE
from transformer.training.trainer import TrainingStep

ROOT = Path(__file__).resolve().parents[4]
RUN = "run"
"""Name of the directory that the process writes, inside the folder of the run."""
POINTS = 300
"""Most points of a curve."""
TICK = 0.2
"""Seconds between two looks at what the process takes."""
GRACE = 20
"""Seconds in which a process that was asked to stop may save."""
MB = 1_000_000
KIND = "cross"
_ERRORS = "said.txt"
"""Standard error of the process."""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Curves:
    """Measurements of a run so far; every list of points is (step, value)."""

    step: int = 0  # the last step
    seconds: float = 0.0  # time of all steps together
    # training loss in nats per token: means over neighbouring steps, if there are many
    loss: tuple[tuple[int, float], ...] = ()
    valid: tuple[tuple[int, float], ...] = ()  # validation loss of the weights that would be kept
    exact: tuple[tuple[int, float], ...] = ()  # share of held-out pairs that are written exactly

    @classmethod
    def of(cls, steps: Sequence[TrainingStep]) -> Curves:
        """The curves of steps in order."""
        measured = (
            (each.step, [loss for loss in (each.valid_loss, each.valid_loss_average) if loss is not None])
            for each in steps
        )
        return cls(
            steps[-1].step if steps else 0,
            sum(each.seconds for each in steps),
            tuple(_means(steps)),
            tuple((step, min(losses)) for step, losses in measured if losses),
            tuple((each.step, each.exact) for each in steps if each.exact is not None),
        )


def _means(steps: Sequence[TrainingStep]) -> Iterator[tuple[int, float]]:
    """At most POINTS points: the last step and the mean loss of each run of neighbours."""
    size = -(-len(steps) // POINTS) or 1
    for start in range(0, len(steps), size):
        group = steps[start : start + size]
        yield group[-1].step, sum(each.loss for each in group) / len(group)


class Log:
    """A log of JSON lines that another process writes; each line is read once."""

    def __init__(self, path: Path) -> None:
        self._path, self._read, self._steps = path, 0, list[TrainingStep]()
        self._lock = threading.Lock()

    def curves(self) -> Curves:
        """Measurements up to now; none if the file does not exist yet."""
        with self._lock, suppress(OSError), self._path.open("rb") as file:
            file.seek(self._read)
            content = file.read()
            complete = content[: content.rfind(b"\n") + 1]
            self._read += len(complete)
            self._steps += filter(None, map(read_step, complete.splitlines()))
        return Curves.of(tuple(self._steps))


class TrainingRun:
    """A running `python -m transformer train` at low priority on one thread, watched as long as it lives.

    It obeys what comes through a pipe that this server holds open. If the server ends, however it ends, the
    system closes the pipe, and the process stops after its present step.

    Attributes:
        told: How it ended, in one sentence; empty while it runs.
        paused: Whether it was paused.
    """

    def __init__(
        self,
        order: TrainingOrder,  # what it is for
        folder: Path,  # its folder
        owner: str = "",  # the visitor who began it; empty if nobody knows
    ) -> None:
        self.order, self.folder, self.owner = order, folder, owner
        self.told, self.paused, self.began = "", False, time.monotonic()
        self.curves = Log(folder / RUN / LOG_FILE).curves
        self._process: subprocess.Popen[bytes] | None = None
        self._why, self._lock, self._ended = "", threading.Lock(), threading.Event()

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
        return None if self._process is None else self._process.pid

    def begin(
        self,
        limits: Limits,  # what it may take
        used: Callable[[], int],  # gives the bytes of all files that count
    ) -> None:
        """Starts the process and the thread that watches it; OSError if it cannot be started."""
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        arguments = self.order.plan.arguments(RUN)
        with (self.folder / _ERRORS).open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "transformer", *arguments, "--obey-input"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=self.folder,
                env=os.environ | dict.fromkeys(_THREADS, "1") | {"PYTHONPATH": path},
                process_group=0,
            )
        with suppress(OSError):
            priority = os.getpriority(os.PRIO_PROCESS, 0) + limits.nice
            os.setpriority(os.PRIO_PROCESS, self._process.pid, priority)
        _limit_files(self._process.pid, int(limits.disk_mb * MB))
        threading.Thread(target=self._watch, args=(self._process, limits, used), daemon=True).start()

    def pause(self) -> None:
        """Holds it after its present step; it keeps its memory."""
        with self._lock:
            if not self.told and not self._why:
                self.paused = self._say(PAUSE)

    def go_on(self) -> None:
        """Lets it continue."""
        with self._lock:
            if not self.told and self._say(GO_ON):
                self.paused = False

    def stop(self, why: str = "") -> None:
        """Asks it to save and to end, or ends it at once before it could save; the first reason counts."""
        with self._lock:
            if self._process is None or self.told:
                return
            saved = "and saved after its last step" if self.has_model else "before anything was saved"
            self._why, self.paused = self._why or why or f"Stopped, {saved}.", False
            if self.has_model:
                self._say(STOP)
            else:
                self._process.kill()

    def close(self, seconds: float) -> None:
        """Stops it, and ends it at once if it takes longer than some seconds."""
        if self._process is not None and not self.told:
            self.stop("The server ended, and the run with it.")
            if not self.wait(seconds):
                self._process.kill()

    def wait(self, seconds: float) -> bool:
        """Whether it ends within some seconds."""
        return self._ended.wait(seconds)

    def ended(self, outcome: str) -> None:
        """Says how a run ended whose process is gone."""
        self.told, self.paused = outcome, False
        self._ended.set()

    def _say(self, line: bytes) -> bool:
        if self._process is None or self._process.stdin is None:
            return False
        with suppress(OSError, ValueError):  # it may have ended meanwhile
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        return True

    def _watch(self, process: subprocess.Popen[bytes], limits: Limits, used: Callable[[], int]) -> None:
        latest = float("inf")
        while (status := _status(process)) is None:
            if not self._why and (beyond := self._beyond(process.pid, limits, used)):
                self.stop(beyond)
            if self._why:
                latest = min(latest, time.monotonic() + GRACE)
            if time.monotonic() > latest:
                process.kill()
        self.ended(self._why or self._verdict(status))

    def _beyond(self, pid: int, limits: Limits, used: Callable[[], int]) -> str:
        """Which limit it exceeds, as a sentence; empty if none."""
        if time.monotonic() - self.began > 60 * limits.minutes:
            return f"Stopped after {limits.minutes:g} minutes, the limit of this server."
        if _resident(pid) > limits.memory_mb * MB:
            return f"Stopped: it took more than {limits.memory_mb:g} MB of memory, the limit of this server."
        if used() > limits.disk_mb * MB:
            return f"Stopped: its files took more than {limits.disk_mb:g} MB, the limit of this server."
        return ""

    def _verdict(self, status: int) -> str:
        if status == 0:
            return f"Finished all {self.order.plan.steps:,} steps."
        kept = "its last checkpoint is kept" if self.has_model else "it had not saved a checkpoint before"
        if status < 0:
            return f"Its process was ended from outside (signal {-status}); {kept}."
        reason = _last_words(self.folder).rstrip(".") or f"its process ended with status {status}"
        return f"It failed: {reason}; {kept}."


def _status(process: subprocess.Popen[bytes]) -> int | None:
    """Its exit status (negative: the signal that ended it); None if it still runs after a tick."""
    try:
        status = process.wait(TICK)
    except subprocess.TimeoutExpired:
        return None
    if process.stdin is not None:
        process.stdin.close()
    return status


def _resident(pid: int) -> int:
    """Bytes of memory that a process holds; 0 if the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _limit_files(pid: int, most_bytes: int) -> None:
    """Lets the system refuse larger files, if it can."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most_bytes, most_bytes))


def _last_words(folder: Path) -> str:
    """The last line that the process wrote, without bars of progress; empty if there is none."""
    with suppress(OSError):
        lines = (folder / _ERRORS).read_text(encoding="utf-8", errors="replace").splitlines()
        told = [line.strip() for line in lines if line.strip() and "tokens/s" not in line]
        return told[-1][-300:] if told else ""
    return ""


@dataclass(frozen=True)
class PairLook:
    """A pair at one checkpoint."""

    step: int  # the step of its weights
    # the right output, forced, so that rows and columns stay from checkpoint to checkpoint
    forced: Translation
    written: str  # what the model writes on its own
    telling: Head  # the head of cross-attention whose rows differ most, see ``difference``


def look(run: TrainingRun) -> PairLook | None:
    """The pair at the last checkpoint; None if there is none yet, ValueError if it is damaged."""
    if not run.has_model:
        return None
    return _look(str(run.directory), (run.directory / WEIGHTS_FILE).stat().st_mtime_ns, run)


@st.cache_resource(show_spinner=False, max_entries=4)
def _look(directory: str, changed: int, _run: TrainingRun) -> PairLook:
    checkpoint = load_checkpoint(_run.directory)
    with safe_open(_run.directory / WEIGHTS_FILE, framework="pt") as file:
        step = int((file.metadata() or {}).get("step", 0))
    name = f"{_run.order.plan.task}, step {step:,}"
    model = Translator(checkpoint.translating, checkpoint.tokenizer, name=name)
    pair, config = _run.order.example, checkpoint.translating.config
    forced = model.force(pair.source, pair.target)
    heads = list(product(range(config.stacks["decoder"].n_layers), range(config.n_heads)))
    telling = max(heads, key=lambda head: difference(forced.weights(AttentionKind.CROSS, *head)))
    return PairLook(step, forced, model.translate(pair.source, capture=False).text, telling)


def difference(weights: np.ndarray) -> float:
    """Difference between the rows of a map (queries, keys), in nats: the information of a row about its key.

    It is the entropy of the mean row less the mean entropy of the rows: 0 if all rows are alike, and the
    logarithm of their number if each looks at a key of its own.
    """
    return float(_entropy(weights.mean(0)) - _entropy(weights).mean())


def _entropy(rows: np.ndarray) -> np.ndarray:
    return -(rows * np.log(np.maximum(rows, 1e-12))).sum(-1)
