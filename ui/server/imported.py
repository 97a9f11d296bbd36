"""Runs that a visitor opened from files: kept for the visit, listed among the models, limited in size."""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass

import transformer
from figures.base import labels
from transformer.exports.record import TraceFileError
from transformer.interventions import Intervention
from transformer.runs.translation import Translation
from transformer.text.typed import clean
from ui.address import session
from ui.address.parameters import parse

PREFIX = "imported: "
MOST = 4
LONGEST = 255
"""Most letters of a file's name, as file systems allow."""
LARGEST = 128 * 2**20
"""Most bytes of traces that one visitor may keep open."""


@dataclass(frozen=True, eq=False)
class Imported:
    """An open file."""

    name: str  # name in the list of models; contains a digest of the file
    translation: Translation  # the run

    @property
    def nbytes(self) -> int:
        """Bytes of the trace."""
        return 0 if self.translation.attention is None else self.translation.attention.nbytes

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


def is_imported(name: str | None) -> bool:
    """Whether a name in the list of models belongs to a file."""
    return name is not None and name.startswith(PREFIX)


def open_file(file_name: str, content: bytes) -> Imported:
    """Opens a file for this visit; if too many are open, the oldest are closed.

    Raises:
        TraceFileError: the file is damaged, foreign or too large; the message says so in one sentence.
    """
    digest = hashlib.sha256(content).hexdigest()[:6]
    shown = "".join(map(labels.display, re.sub(r"[\s<>&]+", " ", file_name[-LONGEST:]))).strip()
    run = transformer.load_trace(io.BytesIO(content))
    opened = Imported(f"{PREFIX}{shown or 'file'} ({digest})", run)
    if opened.nbytes > LARGEST:
        raise TraceFileError(f"The trace takes more than {LARGEST // 2**20} MiB, the limit for one visit.")
    kept = session.imported()
    kept.pop(opened.name, None)
    kept[opened.name] = opened
    while len(kept) > MOST or sum(each.nbytes for each in kept.values()) > LARGEST:
        kept.pop(next(iter(kept)))
    return opened


def traces() -> list[str]:
    """Names of the open files; every view of such a run works."""
    return list(session.imported())


def find(name: str) -> Imported:
    """An open file.

    Raises:
        KeyError: this visitor has no such file open.
    """
    found: Imported = session.imported()[name]
    return found


def run_of(
    name: str, text: str, decode: str, target: str | None, changes: tuple[Intervention, ...] = ()
) -> Translation:
    """The run of an open file; what was changed in it belongs to the file, so a request names no changes.

    Raises:
        ValueError: the request is for something other than that run.
    """
    opened = find(name)
    wanted = opened.selection
    own = None if wanted["target"] is None else clean(wanted["target"])
    if changes or (clean(wanted["text"] or ""), wanted["decode"], own) != (text, decode, target):
        raise ValueError(
            "An imported file holds one run only: choose a model on the left to translate anything else."
        )
    return opened.translation
