"""Train here: one run at a time, a process at low priority within limits.

And how its model is kept.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir, mkdtemp
from typing import IO

import numpy as np
import streamlit as st
from safetensors import safe_open

from explorer.app.server import models
from explorer.app.server.hosted import Limits, closed
from explorer.app.server.jobs import Job, JobError, Tell
from explorer.app.server.queue import FairQueue
from explorer.app.server.training_plan import Pairs, Plan, example
from explorer.lenses.what_if.arithmetic import entropy
from transformer import Translation, Translator
from transformer.config import AttentionKind, Head
from transformer.storage.description import CARD_FILE, CONFIG_FILE, WEIGHTS_FILE
from transformer.storage.directory import load_checkpoint
from transformer.storage.files import claimed, write_atomically
from transformer.text.pairs import DataError
from transformer.training.history import write_history
from transformer.training.log import read_step
from transformer.training.run import LOG_FILE, STATE_FILE
from transformer.training.trainer import TrainingStep

RUN = "run"
"""Name of the model directory that the process writes, inside the folder of the run."""
MARK = "trained-here"
"""An empty file in a kept model."""
PREFIX, OWNER = "training-", ".owner"
"""How the folders of runs begin, and the file in each that its server and its process claim."""
TICK, GRACE = 0.2, 20
"""Seconds between two looks at what the process takes, and those in which it may save once it has
to stop."""
MB = 1_000_000
KIND = "cross"
_ERRORS = "errors.txt"
"""Standard error of the process."""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38}[A-Za-z0-9])?")


@dataclass(eq=False)
class Log:
    """A log of JSON lines that another process writes; each line is read once."""

    path: Path
    _read: int = 0
    _steps: list[TrainingStep] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def steps(self) -> list[TrainingStep]:
        """The steps up to now; none if the file does not exist yet."""
        with self._lock, suppress(OSError), self.path.open("rb") as file:
            file.seek(self._read)
            content = file.read()
            complete = content[: content.rfind(b"\n") + 1]
            self._read += len(complete)
            self._steps += filter(None, map(read_step, complete.splitlines()))
        return self._steps[:]


class TrainingRun(Job[list[TrainingStep]]):
    """A `python -m transformer train` at low priority on one thread: a job that its owner alone
    waits for.

    The process stops after its present step once its standard input ends. This server holds the
    other end of that pipe, and the system closes it with the server, however that ends.
    """

    def __init__(
        self,
        plan: Plan,  # task and sizes
        pairs: Pairs | None = None,  # the visitor's own, if the task asks for them
        owner: str = "",  # who begins it, and alone may stop it
        limits: Limits | None = None,  # what it may take; the usual ones
    ) -> None:
        self.plan = plan
        self.example = example(plan, pairs)
        self.owner = owner
        self._limits = limits or Limits()
        self.folder = Path(mkdtemp(prefix=PREFIX))
        self._owner = claimed(self.folder / OWNER)
        self.delete = weakref.finalize(self, _delete, self.folder, self._owner)
        """Deletes all its files; so does the end of the server."""
        self.directory = self.folder / RUN
        """The model directory that the process writes."""
        if pairs is not None:
            pairs.write(self.folder)
        self.steps, self.pid = Log(self.directory / LOG_FILE).steps, 0
        super().__init__(
            "training", plan.steps, self._train, self.steps, FairQueue(1), shares=False
        )

    @property
    def has_model(self) -> bool:
        """Whether there is a checkpoint to look at and to keep."""
        return all((self.directory / name).is_file() for name in (CONFIG_FILE, WEIGHTS_FILE))

    @property
    def outcome(self) -> str:
        """How it ended, in one sentence; empty while it goes on."""
        if self.running:
            return ""
        if self.failed or self.complete:
            return self.failed or f"Finished all {self.total:,} steps."
        return f"Stopped, {'and saved after its last step' if self.has_model else 'before anything was saved'}."

    def stop(self) -> None:
        """Lets it save and end, or ends it at once before it could save."""
        self.leave(self.owner)

    def _train(self, tell: Tell) -> None:
        with self._process() as process:
            try:
                while (status := process.poll()) is None:
                    steps = self.steps()
                    tell(steps[-1].step if steps else 0)
                    if beyond := self._beyond():
                        raise JobError(beyond)
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(TICK)
            finally:
                if process.stdin is not None:
                    process.stdin.close()
                if not self.has_model:
                    process.kill()
                try:
                    process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    process.kill()
        if status:
            raise JobError(self._verdict(status))

    def _process(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, (str(models.ROOT), os.environ.get("PYTHONPATH"))))
        arguments = [*self.plan.arguments(RUN), "--obey-input"]
        self._began = time.monotonic()
        with (self.folder / _ERRORS).open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "transformer", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=self.folder,
                env=os.environ | dict.fromkeys(_THREADS, "1") | {"PYTHONPATH": path},
                process_group=0,
                # so that the folder stays claimed as long as the process writes into it
                pass_fds=() if self._owner is None else (self._owner.fileno(),),
            )
        self.pid = process.pid
        most = int(self._limits.disk_mb * MB)
        with suppress(OSError):
            priority = os.getpriority(os.PRIO_PROCESS, 0) + self._limits.nice
            os.setpriority(os.PRIO_PROCESS, self.pid, priority)
        with suppress(
            ImportError, AttributeError, OSError, ValueError
        ):  # the system may refuse larger files
            import resource

            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (most, most))
        return process

    def _beyond(self) -> str:
        """Which limit it exceeds, as a sentence; empty if none."""
        limits = self._limits
        if time.monotonic() - self._began > 60 * limits.minutes:
            return f"Stopped after {limits.minutes:g} minutes, the limit of this server."
        resident = 0  # bytes of memory that the process holds, if the system says it
        with suppress(OSError, ValueError, IndexError):
            resident = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
            resident *= os.sysconf("SC_PAGE_SIZE")
        if resident > limits.memory_mb * MB:
            return (
                f"Stopped: it took more than {limits.memory_mb:g} MB of memory, the limit of this "
                "server."
            )
        if nbytes_of(self.folder, *kept_models()) > limits.disk_mb * MB:
            return (
                f"Stopped: its files took more than {limits.disk_mb:g} MB, the limit of this "
                "server."
            )
        return ""

    def _verdict(self, status: int) -> str:
        remains = (
            "its last checkpoint is kept"
            if self.has_model
            else "it had not saved a checkpoint before"
        )
        if status < 0:
            return f"Its process was ended from outside (signal {-status}); {remains}."
        reason = f"its process ended with status {status}"
        with suppress(OSError):
            lines = (
                (self.folder / _ERRORS).read_text(encoding="utf-8", errors="replace").splitlines()
            )
            for line in lines:  # the last one counts that is no bar of progress
                if line.strip() and "tokens/s" not in line:
                    reason = line.strip()[-300:].rstrip(".")
        return f"It failed: {reason}; {remains}."


def _delete(folder: Path, owner: IO[str] | None) -> None:
    """Deletes the folder of a run, and gives it up."""
    shutil.rmtree(folder, ignore_errors=True)
    if owner is not None:
        owner.close()


def kept_models() -> list[Path]:
    """The models that visitors have kept from runs."""
    return [mark.parent for mark in models.own_models().glob(f"*/{MARK}")]


def nbytes_of(*folders: Path) -> int:
    """Bytes of all files in some folders."""
    total = 0
    for path in (path for folder in folders for path in folder.rglob("*")):
        with suppress(OSError):  # the file was deleted meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


@dataclass(eq=False)
class Workshop:
    """The run of a server, if there is one, for all its visitors.

    Only the visitor who began a run may stop it. Once it has ended, anyone may keep its model, or
    start another run, which replaces it.
    """

    run: TrainingRun | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, visitor: str, plan: Plan, pairs: Pairs | None = None) -> None:
        """Begins a run; ValueError if it cannot begin, which says why in one sentence."""
        if (why := closed()) is not None:
            raise ValueError(why)
        limits = Limits.from_environment()
        with self._lock, _refusing("The run cannot begin"):
            if self.run is not None and not self.run.outcome:
                raise ValueError("A run is going on here already; one at a time is allowed.")
            models.own_models().mkdir(parents=True, exist_ok=True)
            if (used := nbytes_of(*kept_models()) / MB) > limits.disk_mb:
                raise ValueError(
                    f"The models kept here take {used:,.0f} MB, and this server allows "
                    f"{limits.disk_mb:g} MB; whoever runs it can delete some."
                )
            run = TrainingRun(plan, pairs, visitor, limits)
            run.wait(visitor, visitor)
            self._replace(run)

    def keep(
        self,
        name: str,  # its name: letters, digits, - and _
    ) -> None:
        """Makes the model of a run that has ended one of the models that everybody can choose.

        ValueError if it cannot be kept under this name; the message says why in one sentence.
        """
        with self._lock, _refusing("The model cannot be kept"):
            run = self.run
            place = models.own_models()
            if run is None or not run.outcome or not run.has_model:
                raise ValueError("There is no run that has ended and could be kept.")
            if not _NAME.fullmatch(name):
                raise ValueError(
                    "A name has 1 to 40 letters (a to z), digits, - and _, and begins and ends "
                    "with a letter or digit."
                )
            names = {*models.available(), *models.FOLDERS, *(path.name for path in place.iterdir())}
            if name.lower() in map(str.lower, names):
                raise ValueError(f"There is already a model called {name}; choose another name.")
            with TemporaryDirectory(prefix=".", dir=place) as folder:
                state = shutil.ignore_patterns(STATE_FILE)
                _finish(Path(shutil.copytree(run.directory, Path(folder) / name, ignore=state)))
                os.replace(
                    Path(folder) / name, place / name
                )  # another server may be quicker, and is refused
            self._replace(None)

    def _replace(self, run: TrainingRun | None) -> None:
        if self.run is not None:
            self.run.delete()
        self.run = run


@contextmanager
def _refusing(start: str) -> Iterator[None]:
    """Turns an error of the system into a sentence, without the server's paths."""
    try:
        yield
    except OSError as error:
        reason = (
            getattr(error.__cause__, "strerror", None) or error.strerror or str(error).rstrip(".")
        )
        raise ValueError(f"{start}: {reason}.") from error


def _finish(directory: Path) -> None:
    """Turns the directory of a run into a model's: its name on its card, its history."""
    card = directory / CARD_FILE
    output = f"--output models/{directory.name}"
    if card.is_file():
        text = os.fsdecode(card.read_bytes()).replace(f"\n# {RUN}\n", f"\n# {directory.name}\n")
        text = text.replace(f"--output {RUN} ", f"{output} ").replace(" --obey-input", "")
        write_atomically(card, os.fsencode(text))
    if (log := directory / LOG_FILE).is_file():
        with suppress(DataError):  # stopped before its first step
            write_history(
                directory, log, f"python -m transformer train {output}", f"{datetime.now(UTC):%F}"
            )
    (directory / MARK).touch()


def remove_leftovers() -> None:
    """Removes the folders of runs that no process claims: a server that is killed removes none."""
    if find_spec("fcntl") is None:  # where claims cannot be told
        return
    for owner in Path(gettempdir()).glob(f"{PREFIX}*/{OWNER}"):
        with suppress(OSError):  # another user's
            if not owner.is_symlink() and (claim := claimed(owner)) is not None:
                _delete(owner.parent, claim)


@st.cache_resource(show_spinner=False)
def workshop() -> Workshop:
    """The workshop that all visitors share; the first one finds no files of a server before."""
    remove_leftovers()
    return Workshop()


# --- the held-out pair while a model learns ------------------------------------------------------


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
    name = f"{_run.plan.task}, step {step:,}"
    model = Translator(checkpoint.translating, checkpoint.tokenizer, name=name)
    pair, config = _run.example, checkpoint.translating.config
    forced = model.force(pair.source, pair.target)
    heads = list(product(range(config.stacks["decoder"].n_layers), range(config.n_heads)))
    telling = max(heads, key=lambda head: difference(forced.weights(AttentionKind.CROSS, *head)))
    return PairLook(step, forced, model.translate(pair.source, capture=False).text, telling)


def difference(weights: np.ndarray) -> float:
    """Difference between the rows of a map (queries, keys), in nats: the information of a row about
    its key.

    It is the entropy of the mean row less the mean entropy of the rows: 0 if all rows are alike,
    and the logarithm of their number if each looks at a key of its own.
    """
    return float(entropy(weights.mean(0)) - entropy(weights).mean())
