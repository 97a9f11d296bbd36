"""The workshop: at most one run at a time, whom it obeys, and how its model is kept."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import streamlit as st

from explorer.app.server import catalogue
from explorer.app.server.workshop.limits import Limits, closed
from explorer.app.server.workshop.plan import Pairs, Plan, example
from explorer.app.server.workshop.run import MB, PLAN_FILE, RUN, TrainingOrder, TrainingRun
from explorer.lenses.targets.history import write_history
from transformer.storage.description import CARD_FILE, WEIGHTS_FILE
from transformer.storage.files import claimed, write_atomically
from transformer.text.pairs import DataError
from transformer.training.run import LOG_FILE, STATE_FILE

FOLDER = ".here"
"""Folder of the run, inside the folder of models; a name with a dot is no model's."""
MARK = "trained-here"
"""An empty file in a kept model."""
LAST_MOMENT = 5
"""Seconds that a run has to save when the server ends."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38}[A-Za-z0-9])?")
_BUSY = "A run is going on here already; one at a time is allowed."
_RESTARTED = "The server was started again meanwhile; what the run had saved is kept."


class Workshop:
    """The run of a server, if there is one, for all its visitors.

    Only the visitor who began a run pauses, continues and stops it. Once it has ended, anyone may keep its
    model or start another run, which replaces it.
    """

    def __init__(
        self,
        models: Path,  # the folder of models
    ) -> None:
        self._models, self._folder = models, models / FOLDER
        self._lock = threading.Lock()
        self._claim: IO[str] | None = None
        self.run: TrainingRun | None = self._found()
        atexit.register(self.close)

    def start(
        self,
        visitor: str,  # who begins it
        plan: Plan,  # task and sizes
        pairs: Pairs | None = None,  # the visitor's own, if the task asks for them
    ) -> None:
        """Begins a run.

        Raises:
            ValueError: It cannot begin; the message says why in one sentence.
        """
        if (why := closed()) is not None:
            raise ValueError(why)
        limits = Limits.from_environment()
        asked = TrainingOrder(plan, example(plan, pairs))
        with self._lock:
            try:
                self._check_free(limits)
                self._begin(TrainingRun(asked, self._folder / RUN, visitor), limits, pairs)
            except OSError as error:
                raise ValueError(f"The run cannot begin: {_reason(error)}.") from error

    def _check_free(self, limits: Limits) -> None:
        if self.run is not None and not self.run.told:
            raise ValueError(_BUSY)
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
        if self._used() > limits.disk_mb * MB:
            raise ValueError(
                f"The models kept here take {self._used() / MB:,.0f} MB, and this server allows "
                f"{limits.disk_mb:g} MB; whoever runs it can delete some."
            )

    def _begin(self, run: TrainingRun, limits: Limits, pairs: Pairs | None) -> None:
        run.folder.mkdir(parents=True)
        run.asked.write(run.folder)
        if pairs is not None:
            pairs.write(run.folder)
        run.begin(limits, self._used)
        self.run = run

    def _is_alone(self) -> bool:
        """Whether no other server uses the folder; the system ends this claim with the process."""
        if self._claim is None:
            self._claim = claimed(self._folder / "lock")
        return self._claim is not None

    def controls(self, visitor: str) -> bool:
        """Whether a visitor may pause, continue and stop the run."""
        return self.run is not None and not self.run.told and self.run.owner == visitor

    def pause(self, visitor: str) -> None:
        """Pauses the run of this visitor."""
        if self.run is not None and self.controls(visitor):
            self.run.pause()

    def go_on(self, visitor: str) -> None:
        """Continues the run of this visitor."""
        if self.run is not None and self.controls(visitor):
            self.run.go_on()

    def stop(self, visitor: str) -> None:
        """Stops the run of this visitor, after it has saved."""
        if self.run is not None and self.controls(visitor):
            self.run.stop()

    def keep(
        self,
        name: str,  # its name: letters, digits, - and _
    ) -> None:
        """Makes the model of a run that has ended one of the models that everybody can choose.

        Raises:
            ValueError: It cannot be kept under this name; the message says why in one sentence.
        """
        with self._lock:
            run = self.run
            if run is None or not run.told or not run.has_model:
                raise ValueError("There is no run that has ended and could be kept.")
            self._check_name(name)
            try:
                _finish(run, name)
                os.replace(run.directory, self._models / name)
                shutil.rmtree(run.folder, ignore_errors=True)
            except OSError as error:
                raise ValueError(f"The model cannot be kept: {_reason(error)}.") from error
            self.run = None

    def _check_name(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(
                "A name has 1 to 40 letters (a to z), digits, - and _, and begins and ends with a letter or "
                "digit."
            )
        taken = {each.lower() for each in catalogue.available()} | {*catalogue.FOLDERS}
        if self._models.is_dir():
            taken |= {path.name.lower() for path in self._models.iterdir()}
        if name.lower() in taken:
            raise ValueError(f"There is already a model called {name}; choose another name.")

    def close(self) -> None:
        """Ends the run, because the server ends, and leaves the folder to others."""
        if self.run is not None:
            self.run.close(LAST_MOMENT)
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def _found(self) -> TrainingRun | None:
        """Runs that an earlier server left."""
        folder = self._folder / RUN
        if not (folder / PLAN_FILE).is_file() or not self._is_alone():
            return None
        try:
            run = TrainingRun(TrainingOrder.read(folder), folder)
        except ValueError:
            return None
        run.ended(_RESTARTED)
        return run

    def _used(self) -> int:
        """Bytes of the run and of the models kept from runs."""
        kept = [path.parent for path in self._models.glob(f"*/{MARK}")]
        return sum(_size(folder) for folder in (self._folder, *kept))


def _reason(error: OSError) -> str:
    """The system's words, without the server's paths."""
    return getattr(error.__cause__, "strerror", None) or error.strerror or str(error).rstrip(".")


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # the file was deleted meanwhile
            continue
    return total


def _finish(run: TrainingRun, name: str) -> None:
    """Turns the directory of a run into a model's: its name on its card, its history, no state to resume."""
    card = run.directory / CARD_FILE
    if card.is_file():
        text = os.fsdecode(card.read_bytes()).replace(f"\n# {RUN}\n", f"\n# {name}\n")
        text = text.replace(f"--output {RUN} ", f"--output models/{name} ").replace(" --obey-input", "")
        write_atomically(card, os.fsencode(text))
    if (run.directory / LOG_FILE).is_file():
        command = f"python -m transformer train --output models/{name}"
        with suppress(DataError):  # stopped before its first step
            today = datetime.now(UTC).date().isoformat()
            write_history(run.directory, run.directory / LOG_FILE, command, today)
    (run.directory / STATE_FILE).unlink(missing_ok=True)
    (run.directory / MARK).touch()


@st.cache_resource(show_spinner=False)
def _workshop(models: str) -> Workshop:
    return Workshop(Path(models))


def workshop() -> Workshop:
    """The workshop that all visitors share."""
    return _workshop(str(catalogue.own_models()))
