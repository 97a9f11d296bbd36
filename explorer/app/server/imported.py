"""Runs that a visitor opened from files: kept for the visit, listed among the models, limited in size."""

from __future__ import annotations

import hashlib
import io
import re
from weakref import WeakValueDictionary

import transformer
from explorer.app.address import session
from explorer.app.server import hosted
from explorer.app.server.models import Imported
from explorer.app.server.source import FILE
from explorer.figures.base import labels
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
    hosted.check(run.source_text, run.text)
    opened = Imported(f"{FILE}{shown or 'file'} ({digest})")
    if nbytes(run) > LARGEST:
        raise TraceFileError(f"The trace takes more than {LARGEST // 2**20} MiB, the limit for one visit.")
    kept = session.visit().files
    kept.pop(opened.name, None)
    if sum(map(nbytes, _open.values())) + nbytes(run) > TOGETHER:
        raise TraceFileError("The files that all visitors have open fill this server: come back later.")
    _open[id(run)] = kept[opened.name] = run
    while len(kept) > MOST or sum(map(nbytes, kept.values())) > LARGEST:
        kept.pop(next(iter(kept)))
    return opened


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
