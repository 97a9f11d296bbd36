"""The workshop: at most one run at a time, whom it obeys, and how its model is kept."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import streamlit as st

from explorer.app.server import models
from explorer.app.server.hosted import Limits, closed
from explorer.app.server.workshop.plan import PLAN_FILE, Pairs, Plan, TrainingOrder, example
from explorer.app.server.workshop.run import MB, RUN, TrainingRun
from transformer.storage.description import CARD_FILE, WEIGHTS_FILE
from transformer.storage.files import claimed, write_atomically
from transformer.text.pairs import DataError
from transformer.training.history import write_history
from transformer.training.run import LOG_FILE, STATE_FILE

FOLDER = ".here"
"""Folder of the run, inside the folder of models; a name with a dot is no model's."""
MARK = "trained-here"
"""An empty file in a kept model."""
LAST_MOMENT = 5
"""Seconds that a run has to save when the server ends."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38}[A-Za-z0-9])?")


class Workshop:
    """The run of a server, if there is one, for all its visitors.

    Only the visitor who began a run controls it. Once it has ended, anyone may keep its model or start
    another run, which replaces it.
    """

    def __init__(
        self,
        models: Path,  # the folder of models
    ) -> None:
        self._models, self._folder, self._lock = models, models / FOLDER, threading.Lock()
        self._claim: IO[str] | None = None
        self.run = self._left()
        atexit.register(self.close)

    def start(
        self,
        visitor: str,  # who begins it
        plan: Plan,  # task and sizes
        pairs: Pairs | None = None,  # the visitor's own, if the task asks for them
    ) -> None:
        """Begins a run; ValueError if it cannot begin, which says why in one sentence."""
        if (why := closed()) is not None:
            raise ValueError(why)
        limits = Limits.from_environment()
        run = TrainingRun(TrainingOrder(plan, example(plan, pairs)), self._folder / RUN, visitor)
        with self._lock, _refusing("The run cannot begin"):
            self._make_room(limits.disk_mb)
            run.folder.mkdir(parents=True)
            run.order.write(run.folder)
            if pairs is not None:
                pairs.write(run.folder)
            run.begin(limits, self._used)
            self.run = run

    def _make_room(self, most_mb: float) -> None:
        """Deletes the last run; ValueError if one is going on, or if what is kept takes too much."""
        if self.run is not None and not self.run.told:
            raise ValueError("A run is going on here already; one at a time is allowed.")
        self._folder.mkdir(parents=True, exist_ok=True)
        if not self._is_alone():
            raise ValueError("Another server trains in the same folder of models; wait until it has ended.")
        if self.run is None and (self._folder / RUN / RUN / WEIGHTS_FILE).exists():
            raise ValueError(
                f"The model of an earlier run is still here, but its {PLAN_FILE} is damaged; whoever runs "
                f"this server can move {FOLDER}/{RUN} away."
            )
        shutil.rmtree(self._folder / RUN, ignore_errors=True)
        self.run = None
        if (used := self._used() / MB) > most_mb:
            raise ValueError(
                f"The models kept here take {used:,.0f} MB, and this server allows {most_mb:g} MB; whoever "
                "runs it can delete some."
            )

    def _is_alone(self) -> bool:
        """Whether no other server uses the folder; the system ends this claim with the process."""
        self._claim = self._claim or claimed(self._folder / "lock")
        return self._claim is not None

    def controls(self, visitor: str) -> bool:
        """Whether a visitor may pause, continue and stop the run."""
        return self.run is not None and not self.run.told and self.run.owner == visitor

    def keep(
        self,
        name: str,  # its name: letters, digits, - and _
    ) -> None:
        """Makes the model of a run that has ended one of the models that everybody can choose.

        ValueError if it cannot be kept under this name; the message says why in one sentence.
        """
        with self._lock, _refusing("The model cannot be kept"):
            run = self.run
            if run is None or not run.told or not run.has_model:
                raise ValueError("There is no run that has ended and could be kept.")
            if not _NAME.fullmatch(name):
                raise ValueError(
                    "A name has 1 to 40 letters (a to z), digits, - and _, and begins and ends with a letter "
                    "or digit."
                )
            taken = {
                *models.available(),
                *models.FOLDERS,
                *(path.name for path in self._models.iterdir()),
            }
            if name.lower() in map(str.lower, taken):
                raise ValueError(f"There is already a model called {name}; choose another name.")
            _finish(run.directory, name)
            os.replace(run.directory, self._models / name)
            shutil.rmtree(run.folder, ignore_errors=True)
            self.run = None

    def close(self) -> None:
        """Ends the run, because the server ends, and leaves the folder to others."""
        if self.run is not None:
            self.run.close(LAST_MOMENT)
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def _left(self) -> TrainingRun | None:
        """The run that an earlier server left."""
        folder = self._folder / RUN
        if not (folder / PLAN_FILE).is_file() or not self._is_alone():
            return None
        with suppress(ValueError):
            run = TrainingRun(TrainingOrder.read(folder), folder)
            run.ended("The server was started again meanwhile; what the run had saved is kept.")
            return run
        return None

    def _used(self) -> int:
        """Bytes of the run and of the models kept from runs."""
        total = 0
        for folder in (self._folder, *(mark.parent for mark in self._models.glob(f"*/{MARK}"))):
            for path in folder.rglob("*"):
                with suppress(OSError):  # the file was deleted meanwhile
                    total += path.stat().st_size if path.is_file() else 0
        return total


@contextmanager
def _refusing(start: str) -> Iterator[None]:
    """Turns an error of the system into a sentence, without the server's paths."""
    try:
        yield
    except OSError as error:
        reason = getattr(error.__cause__, "strerror", None) or error.strerror or str(error).rstrip(".")
        raise ValueError(f"{start}: {reason}.") from error


def _finish(directory: Path, name: str) -> None:
    """Turns the directory of a run into a model's: its name on its card, its history, no state to resume."""
    card = directory / CARD_FILE
    if card.is_file():
        text = os.fsdecode(card.read_bytes()).replace(f"\n# {RUN}\n", f"\n# {name}\n")
        text = text.replace(f"--output {RUN} ", f"--output models/{name} ").replace(" --obey-input", "")
        write_atomically(card, os.fsencode(text))
    if (log := directory / LOG_FILE).is_file():
        command = f"python -m transformer train --output models/{name}"
        with suppress(DataError):  # stopped before its first step
            write_history(directory, log, command, datetime.now(UTC).date().isoformat())
    (directory / STATE_FILE).unlink(missing_ok=True)
    (directory / MARK).touch()


@st.cache_resource(show_spinner=False)
def _workshop(models: str) -> Workshop:
    return Workshop(Path(models))


def workshop() -> Workshop:
    """The workshop that all visitors share."""
    return _workshop(str(models.own_models()))
