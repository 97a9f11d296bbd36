"""Models of the Hub in the app: those in the cache, what visitors asked for, and downloads."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from huggingface_hub import constants

from transformer.hub import fetch as hub
from transformer.hub.fetch import Offer
from transformer.hub.settings import ALLOWED_VARIABLE, Hub, HubError, StoppedError, UnreachableError, is_name

AT_ONCE = 2
"""So many downloads run at the same time; others wait for their turn."""
MOST_ASKED = 1_000
"""Most visitors whose questions are remembered."""


def cached() -> dict[str, Path]:
    """The models in huggingface_hub's cache that may be opened here, by name."""
    try:
        return {each.name: each.directory for each in hub.cached_models()}
    except (HubError, OSError):
        return {}


def cached_model(name: str) -> Path:
    """The directory of a model in the cache.

    Raises:
        KeyError: it is not there, or may not be opened here.
    """
    try:
        found = hub.cached(name) if is_name(name) else None
    except HubError:
        found = None
    if found is None:
        raise KeyError(name)
    return found.directory


def closed() -> str | None:
    """Why nothing can be fetched here; None where it can."""
    try:
        settings = Hub.from_environment()
    except HubError as error:
        return str(error)
    if settings.allowed == ():
        return f"This installation opens no models of the Hub ({ALLOWED_VARIABLE} is empty)."
    if constants.is_offline_mode():
        return "The network is switched off here (HF_HUB_OFFLINE); models in the cache are in the list above."
    return None


def allowed() -> tuple[str, ...] | None:
    """Patterns of the names that may be opened here; None for all."""
    return Hub.from_environment().allowed


class Download:
    """One model on its way: in a thread, while somebody waits for it.

    Attributes:
        offer: what is fetched.
        done: bytes that are there.
        failed: why it stopped; empty while it did not.
        complete: whether all is there.
    """

    def __init__(self, offer: Offer, turns: threading.Semaphore) -> None:
        self.offer, self.done, self.failed, self.complete = offer, 0, "", False
        self._turns, self._waiting, self._lock = turns, set[str](), threading.Lock()
        self._thread: threading.Thread | None = None

    def wait(self, visitor: str) -> None:
        """The visitor waits for it; it starts, or goes on, where it stands."""
        with self._lock:
            self._waiting.add(visitor)
            if self._thread is None and not self.complete:
                self.failed = ""
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def leave(self, visitor: str) -> None:
        """The visitor waits no more; where nobody does, it stops, and whole files stay."""
        with self._lock:
            self._waiting.discard(visitor)

    @property
    def share(self) -> float:
        """How much is there, from 0 to 1."""
        return min(self.done / max(self.offer.nbytes, 1), 1.0)

    def _progress(self, done: int, total: int) -> None:
        self.done = done
        if not self._waiting:
            raise StoppedError("The download was stopped; files that were complete are kept.")

    def _run(self) -> None:
        try:
            with self._turns:
                hub.fetch(self.offer, self._progress)
            self.complete = True
        except HubError as error:
            self.failed = str(error)
        except Exception as error:  # a visitor is told instead of waiting for ever
            self.failed = f"The download stopped: {error}"
        finally:
            with self._lock:
                self._thread = None


@dataclass
class Question:
    """What a visitor asked for, and what the Hub said.

    Attributes:
        name: as it was typed.
        pressed: whether the visitor wants to know; a link only suggests a name.
        offer: what could be fetched; None where it was refused, or not asked yet.
        problem: why not; empty where there is none.
        unreachable: whether the Hub did not answer.
        download: what this visitor waits for.
    """

    name: str
    pressed: bool = True
    offer: Offer | None = None
    problem: str = ""
    unreachable: bool = False
    download: Download | None = None

    @property
    def is_open(self) -> bool:
        """Whether the Hub was not asked yet."""
        return self.pressed and self.offer is None and not self.problem

    def ask(self) -> None:
        """Asks the Hub; takes as long as it takes to answer."""
        try:
            self.offer = hub.look(self.name)
        except HubError as error:
            self.problem, self.unreachable = str(error), isinstance(error, UnreachableError)
        except OSError as error:
            self.problem = f"The cache of the Hub's models cannot be written: {error.strerror or error}."


class Desk:
    """Questions by visitor, and downloads that visitors share."""

    def __init__(self) -> None:
        self._questions: dict[str, Question] = {}
        self._downloads: dict[tuple[str, str], Download] = {}
        self._turns, self._lock = threading.Semaphore(AT_ONCE), threading.Lock()

    def question(self, visitor: str) -> Question | None:
        """What a visitor asked for last."""
        return self._questions.get(visitor)

    def ask(self, visitor: str, name: str) -> None:
        """A visitor asks for a model by its name; an empty one takes the question back.

        The same question again changes nothing, unless there was a problem: a browser sends a field's text
        once more when the field goes.
        """
        with self._lock:
            before = self._questions.get(visitor)
            if before is not None and before.name == name and before.pressed and not before.problem:
                return
            if before is not None and before.download is not None:
                before.download.leave(visitor)
            self._questions.pop(visitor, None)
            if name:
                self._questions[visitor] = Question(name)
            while len(self._questions) > MOST_ASKED:
                self._questions.pop(next(iter(self._questions)))

    def suggest(self, visitor: str, name: str) -> None:
        """Writes a name into the form, where the visitor asked for nothing yet."""
        self._questions.setdefault(visitor, Question(name, pressed=False))

    def fetch(self, visitor: str) -> None:
        """The visitor wants what the Hub offered; who wants the same waits for the same download."""
        question = self._questions.get(visitor)
        if question is None or question.offer is None:
            return
        key = question.offer.name, question.offer.commit
        with self._lock:
            for each in [key for key, found in self._downloads.items() if found.complete or found.failed]:
                del self._downloads[each]
            download = self._downloads.setdefault(key, Download(question.offer, self._turns))
        question.download = download
        download.wait(visitor)


@st.cache_resource(show_spinner=False)
def desk() -> Desk:
    """Shared by all visitors."""
    return Desk()
