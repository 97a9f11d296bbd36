"""Models on the Hub in the app: the cached ones, well-known ones, visitors' questions, and
downloads."""

import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import constants

from explorer.app.address import session
from explorer.app.server import memory
from explorer.app.server.jobs import Job, JobError, Tell
from explorer.app.server.queue import FairQueue
from transformer.hub.files import Offer, cached_models
from transformer.hub.settings import ALLOWED_VARIABLE, Hub, HubError, UnreachableError
from transformer.storage.memory import needed_bytes

MOST = 5
"""Suggestions that are shown at most."""
_ROOM = 1.2
"""Memory that a model takes while it opens, as a share of its weights."""
_downloading = FairQueue(2)
"""Downloads have turns of their own: they wait for the network."""
_lock = threading.Lock()
downloads = dict[tuple[str, str], Job[bool]]()
"""The downloads that visitors share, by name and commit."""


def cached() -> dict[str, Path]:
    """The models in huggingface_hub's cache that may be opened here, by name, as long as no file
    changes."""
    try:
        hub = Hub.from_environment()
        files = (
            *hub.cache.glob("models--*--*/refs/*"),
            *hub.cache.glob("models--*--*/snapshots/*/*"),
        )
        return _cached(
            hub, tuple((file, file.stat().st_mtime_ns) for file in files if file.exists())
        )
    except (HubError, OSError):
        return {}


@lru_cache(4)
def _cached(hub: Hub, _changed: tuple[tuple[Path, int], ...]) -> dict[str, Path]:
    return {model.name: model.directory for model in cached_models(hub)}


def closed() -> str | None:
    """Why this installation can fetch nothing; None if it can."""
    try:
        settings = Hub.from_environment()
    except HubError as error:
        return str(error)
    if settings.allowed == ():
        return (
            f"This installation does not open models from the Hub ({ALLOWED_VARIABLE} names none)."
        )
    if constants.is_offline_mode():
        return (
            "The network is switched off here (HF_HUB_OFFLINE); models in the cache are in the "
            "list above."
        )
    return None


@dataclass
class HubQuestion:
    """What a visitor wants from the Hub, and what it answered."""

    name: str = ""  # the name as typed; empty if nothing is asked for
    pressed: bool = True  # whether the visitor pressed the button; a link only suggests a name
    # what could be fetched; None if the Hub was not asked yet, or the model was refused
    offer: Offer | None = None
    problem: str = ""  # why the model cannot be fetched; empty if there is no problem
    unreachable: bool = False  # whether the Hub did not answer
    download: Job[bool] | None = None  # the download that this visitor waits for

    def look(self) -> None:
        """Asks the Hub, and blocks until it answers."""
        from transformer.hub.fetch import look

        try:
            self.offer = look(self.name)
        except HubError as error:
            self.problem = str(error)
            self.unreachable = isinstance(error, UnreachableError)
        except OSError as error:
            self.problem = (
                f"The cache for models from the Hub cannot be written: {error.strerror or error}."
            )

    def fetch(self) -> None:
        """Fetches what the Hub offered.

        Once nobody waits, the download stops, and whole files stay.
        """
        if self.offer is None:
            return
        offer = self.offer
        key = (self.offer.name, self.offer.commit)

        def work(tell: Tell) -> None:
            from transformer.hub.fetch import fetch

            try:
                fetch(offer, lambda done, _: tell(done))
            except HubError as error:
                raise JobError(str(error)) from error

        with _lock:
            if key not in downloads or downloads[key].complete or downloads[key].failed:
                job = Job("download", offer.nbytes, work, lambda: True, _downloading, shares=False)
                downloads[key] = job
            self.download = downloads[key]
        self.download.wait(session.visit().name)


def question() -> HubQuestion:
    """The question of the present visitor."""
    visit = session.visit()
    visit.question = visit.question or HubQuestion()
    found: HubQuestion = visit.question
    return found


def ask(name: str, again: bool = False) -> None:
    """Asks for a model by name; an empty name withdraws the question.

    Repeating a question changes nothing, because a browser sends the text of a field again when the
    field disappears, unless it is asked again.
    """
    before = question()
    if again or name != before.name or not before.pressed:
        if before.download is not None:
            before.download.leave(session.visit().name, stops=False)
        session.visit().question = HubQuestion(name)


def take(name: str) -> None:
    """Looks a model up and begins its download at once; what is wrong stands in the form."""
    ask(name, again=True)
    download = question()
    download.look()
    if download.offer is None:
        return
    if needed_bytes(download.offer.config) <= memory.available():
        download.fetch()


def suggest(name: str) -> None:
    """Writes a name into the form, if the visitor has not asked for anything yet."""
    if not question().name:
        session.visit().question = HubQuestion(name, pressed=False)


# --- well-known models ---------------------------------------------------------------------------


class Suggested(NamedTuple):
    """A model on the Hub.

    Parameters, licences and languages were written down by hand and not read from the Hub: the card
    that opens with a model is what counts.
    """

    name: str
    millions: int  # of parameters
    licence: str
    does: str  # what it does, in which languages
    bytes_each: int = 4  # of a number in its file

    @property
    def nbytes(self) -> int:
        """Bytes of its weights in memory, in 32 bits."""
        return 4_000_000 * self.millions

    @property
    def download(self) -> int:
        """Bytes of its file."""
        return 1_000_000 * self.bytes_each * self.millions


LANGUAGE_MODEL = Suggested(
    "HuggingFaceTB/SmolLM2-135M", 135, "Apache 2.0", "continues English text", bytes_each=2
)
"""A real language model that is small enough for every machine."""
_PROMPT, _ENGLISH = "follows a prompt, mostly in English", "summarises English news"
_T5 = "does the task that the text names; English, German, French"
MODELS = (
    Suggested("google-t5/t5-small", 61, "Apache 2.0", _T5),
    Suggested("Helsinki-NLP/opus-mt-en-de", 74, "CC BY 4.0", "translates English into German"),
    Suggested("google/flan-t5-small", 77, "Apache 2.0", _PROMPT),
    LANGUAGE_MODEL,
    Suggested("facebook/bart-base", 139, "Apache 2.0", "fills in and repairs English text"),
    Suggested("google/flan-t5-base", 248, "Apache 2.0", _PROMPT),
    Suggested("sshleifer/distilbart-cnn-12-6", 306, "Apache 2.0", _ENGLISH),
    Suggested("facebook/bart-large-cnn", 406, "MIT", _ENGLISH),
    Suggested("facebook/m2m100_418M", 484, "MIT", "translates between 100 languages"),
    Suggested(
        "facebook/mbart-large-50-many-to-many-mmt", 611, "MIT", "translates between 50 languages"
    ),
    Suggested(
        "facebook/nllb-200-distilled-600M",
        615,
        "CC BY-NC 4.0, not for commercial use",
        "translates between 200 languages",
    ),
)
"""From the smallest to the largest."""


def fitting() -> list[Suggested]:
    """Those that may be opened here and fit the memory that is free.

    Of many, some of every size.
    """
    hub = Hub.from_environment()
    free = memory.available() / _ROOM
    limit = hub.most_bytes
    fit = [model for model in MODELS if model.nbytes <= min(free, limit) and hub.allows(model.name)]
    most = min(MOST, len(fit))
    return [fit[round(at * (len(fit) - 1) / max(most - 1, 1))] for at in range(most)]
