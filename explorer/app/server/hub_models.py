"""Models on the Hub in the app: the cached ones, visitors' questions, and downloads."""

import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import streamlit as st
from huggingface_hub import constants

from explorer.app.address import session
from explorer.app.server.jobs import Job, JobError, Tell
from explorer.app.server.queue import FairQueue
from explorer.app.server.stores import Recent
from transformer.hub.files import Offer, cached_models
from transformer.hub.settings import ALLOWED_VARIABLE, Hub, HubError, UnreachableError

_downloading = FairQueue(2)
"""Downloads have turns of their own: they wait for the network."""
_lock = threading.Lock()


def cached() -> dict[str, Path]:
    """The models in huggingface_hub's cache that may be opened here, by name, as long as no file changes."""
    try:
        hub = Hub.from_environment()
        files = (*hub.cache.glob("models--*--*/refs/*"), *hub.cache.glob("models--*--*/snapshots/*/*"))
        return _cached(hub, tuple((each, each.stat().st_mtime_ns) for each in files if each.exists()))
    except (HubError, OSError):
        return {}


@lru_cache(4)
def _cached(hub: Hub, _changed: tuple[tuple[Path, int], ...]) -> dict[str, Path]:
    return {each.name: each.directory for each in cached_models(hub)}


def closed() -> str | None:
    """Why this installation can fetch nothing; None if it can."""
    try:
        settings = Hub.from_environment()
    except HubError as error:
        return str(error)
    if settings.allowed == ():
        return f"This installation does not open models from the Hub ({ALLOWED_VARIABLE} names none)."
    if constants.is_offline_mode():
        return "The network is switched off here (HF_HUB_OFFLINE); models in the cache are in the list above."
    return None


def is_allowed(name: str) -> bool:
    """Whether this installation may open a model of this name."""
    try:
        return Hub.from_environment().allows(name)
    except HubError:
        return False


def most_bytes() -> int:
    """Largest total size of a model's files that may be downloaded."""
    return Hub.from_environment().most_bytes


def _download(offer: Offer) -> Job[bool]:
    def work(tell: Tell) -> None:
        from transformer.hub.fetch import fetch

        try:
            fetch(offer, lambda done, _: tell(done))
        except HubError as error:
            raise JobError(str(error)) from error

    return Job("download", offer.nbytes, work, lambda: True, _downloading, shares=False)


@st.cache_resource(show_spinner=False)
def downloads() -> dict[tuple[str, str], Job[bool]]:
    """The downloads that visitors share, by name and commit."""
    return {}


@dataclass
class HubQuestion:
    """What a visitor wants from the Hub, and what it answered."""

    visitor: str
    name: str = ""  # the name as typed; empty if nothing is asked for
    pressed: bool = True  # whether the visitor pressed the button; a link only suggests a name
    # what could be fetched; None if the Hub was not asked yet, or the model was refused
    offer: Offer | None = None
    problem: str = ""  # why the model cannot be fetched; empty if there is no problem
    unreachable: bool = False  # whether the Hub did not answer
    download: Job[bool] | None = None  # the download that this visitor waits for

    @property
    def is_open(self) -> bool:
        """Whether the Hub has not been asked yet."""
        return bool(self.name) and self.pressed and self.offer is None and not self.problem

    def ask(self, name: str) -> None:
        """Asks for a model by name; an empty name withdraws the question.

        Repeating a question changes nothing, because a browser sends the text of a field again when the field
        disappears; ``again`` repeats it.
        """
        if name != self.name or not self.pressed:
            if self.download is not None:
                self.download.away(self.visitor)
            self._begin(name)

    def again(self) -> None:
        """Asks once more."""
        if self.download is None:
            self._begin(self.name)

    def suggest(self, name: str) -> None:
        """Writes a name into the form, if the visitor has not asked for anything yet."""
        if not self.name:
            self._begin(name, pressed=False)

    def _begin(self, name: str, pressed: bool = True) -> None:
        vars(self).update(vars(HubQuestion(self.visitor, name, pressed)))

    def look(self) -> None:
        """Asks the Hub, and blocks until it answers."""
        from transformer.hub.fetch import look

        try:
            self.offer = look(self.name)
        except HubError as error:
            self.problem, self.unreachable = str(error), isinstance(error, UnreachableError)
        except OSError as error:
            self.problem = f"The cache for models from the Hub cannot be written: {error.strerror or error}."

    def fetch(self) -> None:
        """Fetches what the Hub offered; once nobody waits, the download stops, and whole files stay."""
        if self.offer is None:
            return
        key = self.offer.name, self.offer.commit
        with _lock:
            found = downloads()
            if key not in found or found[key].complete or found[key].failed:
                found[key] = _download(self.offer)
            self.download = found[key]
        self.download.wait(self.visitor)


_questions = Recent[HubQuestion](1_000)
"""Of the visitors seen last: Streamlit's own store of a session forgets when its connection breaks once."""


def question() -> HubQuestion:
    """The question of the present visitor."""
    visitor = session.visit().name
    return _questions.get(visitor, lambda: HubQuestion(visitor))
