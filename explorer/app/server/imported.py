"""Runs that a visitor opened from files: kept for the visit, listed among the models, limited in size."""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import transformer
from explorer.app.address import session
from explorer.app.address.parameters import parse
from explorer.app.server import hosted
from explorer.app.server.source import FILE, NEEDS_MODEL, NoModelError, Source
from explorer.app.server.stores import Model
from explorer.figures.base import labels
from transformer.config import ModelConfig
from transformer.exports.record import TraceFileError
from transformer.interventions import Intervention
from transformer.run import Translation
from transformer.text.typed import clean

MOST = 4
LONGEST = 255
"""Most letters of a file's name, as file systems allow."""
LARGEST, TOGETHER = 128 * 2**20, 256 * 2**20
"""Most bytes of traces that one visitor may keep open, and all of them together."""
_open = WeakValueDictionary[int, Translation]()  # by `id`: the runs of all visits, as long as one holds them


@dataclass(frozen=True)
class Imported(Source):
    """An open file. The visit holds its run, not what is kept of it: a closed file goes from memory."""

    name: str  # name in the list of models; contains a digest of the file
    path = None

    @property
    def translation(self) -> Translation:
        """The run; KeyError if the file was closed."""
        found: Translation = session.imported()[self.name]
        return found

    @property
    def config(self) -> ModelConfig:
        return self.translation.config

    @property
    def stated(self) -> ModelConfig:
        return self.translation.config

    @property
    def heads(self) -> dict[str, Any]:
        return {}

    def load(self) -> Model:
        raise NoModelError(NEEDS_MODEL)

    @property
    def selection(self) -> dict[str, str | None]:
        """Values of the state that show this run."""
        run = self.translation
        forced = run.method == "forced"
        return {
            "text": run.source_text,
            "decode": "greedy" if forced else parse({"decode": [run.method]})[0].decode,
            "target": run.text if forced else None,
        }


def nbytes(run: Translation) -> int:
    """Bytes of the trace of a run."""
    return 0 if run.attention is None else run.attention.nbytes


def open_file(file_name: str, content: bytes) -> Imported:
    """Opens a file for this visit; if too many are open, the oldest are closed.

    ValueError if the file is damaged, foreign or too large; the message says so in one sentence.
    """
    digest = hashlib.sha256(content).hexdigest()[:6]
    shown = "".join(map(labels.display, re.sub(r"[\s<>&]+", " ", file_name[-LONGEST:]))).strip()
    run = transformer.load_trace(io.BytesIO(content))
    hosted.check_texts(run.source_text, run.text)
    opened = Imported(f"{FILE}{shown or 'file'} ({digest})")
    if nbytes(run) > LARGEST:
        raise TraceFileError(f"The trace takes more than {LARGEST // 2**20} MiB, the limit for one visit.")
    kept = session.imported()
    kept.pop(opened.name, None)
    if sum(map(nbytes, _open.values())) + nbytes(run) > TOGETHER:
        raise TraceFileError("The files that all visitors have open fill this server: come back later.")
    _open[id(run)] = kept[opened.name] = run
    while len(kept) > MOST or sum(map(nbytes, kept.values())) > LARGEST:
        kept.pop(next(iter(kept)))
    return opened


def traces() -> list[str]:
    """Names of the open files; every view of such a run works."""
    return list(session.imported())


def find(name: str) -> Imported:
    """An open file; KeyError if this visitor has no such file open."""
    if name not in session.imported():
        raise KeyError(name)
    return Imported(name)


def run_of(
    opened: Imported, text: str, decode: str, target: str | None, changes: tuple[Intervention, ...] = ()
) -> Translation:
    """The run of an open file; ValueError if the request is for something other than that run.

    What was changed in it belongs to the file, so a request names no changes.
    """
    wanted = opened.selection
    own = None if wanted["target"] is None else clean(wanted["target"])
    if changes or (clean(wanted["text"] or ""), wanted["decode"], own) != (text, decode, target):
        raise ValueError(
            "An imported file holds one run only: choose a model on the left to translate anything else."
        )
    return opened.translation
