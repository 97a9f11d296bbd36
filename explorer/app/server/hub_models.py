"""Models on the Hub in the app: the cached ones, visitors' questions, and downloads."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from huggingface_hub import constants

from transformer.hub import files
from transformer.hub.files import Offer
from transformer.hub.settings import ALLOWED_VARIABLE, Hub, HubError, StoppedError, UnreachableError, is_name

AT_ONCE = 2
"""Most downloads that run at the same time; others wait for their turn."""
MOST_ASKED = 1_000
"""Most visitors whose questions the server remembers."""


def cached() -> dict[str, Path]:
    """The models in huggingface_hub's cache that may be opened here, by name."""
    try:
        return {each.name: each.directory for each in files.cached_models()}
    except (HubError, OSError):
        return {}


def cached_model(name: str) -> Path:
    """The directory of a model in the cache.

    Raises:
        KeyError: the model is not in the cache, or may not be opened here.
    """
    try:
        found = files.cached(name) if is_name(name) else None
    except HubError:
        found = None
    if found is None:
        raise KeyError(name)
    return found.directory


def closed() -> str | None:
    """Why this installation can fetch nothing; None if it can."""
    try:
        settings = Hub.from_environment()
    except HubError as error:
        return str(error)
    if settings.allowed == ():
        return f"This installation does not open models from the Hub ({ALLOWED_VARIABLE} names none)."
    if is_offline():
        return "The network is switched off here (HF_HUB_OFFLINE); models in the cache are in the list above."
    return None


def is_offline() -> bool:
    """Whether the network is switched off (`HF_HUB_OFFLINE`)."""
    return constants.is_offline_mode()


def is_allowed(name: str) -> bool:
    """Whether this installation may open a model of this name."""
    try:
        return Hub.from_environment().allows(name)
    except HubError:
        return False


def most_bytes() -> int:
    """Largest total size of a model's files that may be downloaded."""
    return Hub.from_environment().most_bytes


def allowed() -> tuple[str, ...] | None:
    """Patterns of the model names that may be opened here; None allows all."""
    return Hub.from_environment().allowed


class Download:
    """The download of one model, in a thread that runs while somebody waits for it.

    Attributes:
        offer: what to fetch.
        done: bytes fetched so far.
        failed: why the download failed; empty if it has not.
        complete: whether everything has been fetched.
    """

    def __init__(self, offer: Offer, turns: threading.Semaphore) -> None:
        self.offer, self.done, self.failed, self.complete = offer, 0, "", False
        self._turns, self._waiting, self._lock = turns, set[str](), threading.Lock()
        self._thread: threading.Thread | None = None

    def wait(self, visitor: str) -> None:
        """Adds a visitor who waits for the download; starts or resumes it if it is not running."""
        with self._lock:
            self._waiting.add(visitor)
            if self._thread is None and not self.complete:
                self.failed = ""
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def leave(self, visitor: str) -> None:
        """Removes a visitor; if nobody waits any more, the download stops, and complete files stay."""
        with self._lock:
            self._waiting.discard(visitor)

    @property
    def share(self) -> float:
        """The share that has been fetched, from 0 to 1."""
        return min(self.done / max(self.offer.nbytes, 1), 1.0)

    def _progress(self, done: int, total: int) -> None:
        self.done = done
        if not self._waiting:
            raise StoppedError("The download was stopped; files that are complete are kept.")

    def _run(self) -> None:
        from transformer.hub.fetch import fetch

        try:
            with self._turns:
                fetch(self.offer, self._progress)
            self.complete = True
        except HubError as error:
            self.failed = str(error)
        except Exception as error:  # tell the visitor, who would otherwise wait for ever
            self.failed = f"The download stopped: {error}"
        finally:
            with self._lock:
                self._thread = None


@dataclass
class HubQuestion:
    """A visitor's wish, and the answer of the Hub."""

    name: str  # the name as typed
    pressed: bool = True  # whether the visitor pressed the button; a link only suggests a name
    # what could be fetched; None if the Hub was not asked yet, or the model was refused
    offer: Offer | None = None
    problem: str = ""  # why the model cannot be fetched; empty if there is no problem
    unreachable: bool = False  # whether the Hub did not answer
    download: Download | None = None  # the download that this visitor waits for

    @property
    def is_open(self) -> bool:
        """Whether the Hub has not been asked yet."""
        return self.pressed and self.offer is None and not self.problem

    def ask(self) -> None:
        """Asks the Hub, and blocks until it answers."""
        from transformer.hub.fetch import look

        try:
            self.offer = look(self.name)
        except HubError as error:
            self.problem, self.unreachable = str(error), isinstance(error, UnreachableError)
        except OSError as error:
            self.problem = f"The cache for models from the Hub cannot be written: {error.strerror or error}."


class Desk:
    """Every visitor's question, and the downloads that visitors share."""

    def __init__(self) -> None:
        self._questions: dict[str, HubQuestion] = {}
        self._downloads: dict[tuple[str, str], Download] = {}
        self._turns, self._lock = threading.Semaphore(AT_ONCE), threading.Lock()

    def question(self, visitor: str) -> HubQuestion | None:
        """The visitor's last question."""
        return self._questions.get(visitor)

    def ask(self, visitor: str, name: str) -> None:
        """Records that a visitor asks for a model by name; an empty name withdraws the question.

        Repeating a question changes nothing, because a browser sends the text of a field again when the field
        disappears; ``ask_again`` repeats it.
        """
        with self._lock:
            before = self._questions.get(visitor)
            if before is not None and before.name == name and before.pressed:
                return
            if before is not None and before.download is not None:
                before.download.leave(visitor)
            self._questions.pop(visitor, None)
            if name:
                self._questions[visitor] = HubQuestion(name)
            while len(self._questions) > MOST_ASKED:
                self._questions.pop(next(iter(self._questions)))

    def ask_again(self, visitor: str) -> None:
        """Asks the visitor's last question once more."""
        with self._lock:
            before = self._questions.get(visitor)
            if before is not None and before.download is None:
                self._questions[visitor] = HubQuestion(before.name)

    def suggest(self, visitor: str, name: str) -> None:
        """Writes a name into the form, if the visitor has not asked for anything yet."""
        self._questions.setdefault(visitor, HubQuestion(name, pressed=False))

    def fetch(self, visitor: str) -> None:
        """Fetches what the Hub offered the visitor; visitors of the same model share one download."""
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
    """The desk that all visitors share."""
    return Desk()
