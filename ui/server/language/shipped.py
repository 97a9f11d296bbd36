"""What `python -m lab language` measured of a language model, which ships beside it."""

from __future__ import annotations

from typing import Any

from transformer.storage.description import LANGUAGE_FILE, WEIGHTS_FILE
from transformer.storage.files import read_json
from transformer.storage.marks import DIGESTS, measured
from ui.server import catalogue
from ui.server.stores import kept

PRETRAINING_FILE = "pretraining.json"
Json = dict[str, Any]


def part(name: str, which: str) -> Json | None:
    """One part of the measurements of a model, such as ``induction``; None if it was not measured.

    Its ``weights`` are the first digits of the weights' SHA-256.

    Raises:
        ValueError: the file is damaged.
        KeyError: there is no model of that name.
    """
    directory = catalogue.directory(name)
    key = (LANGUAGE_FILE, str(directory), catalogue.changed(directory))
    found: Json | None = kept("shipped").get(key, lambda: measured(directory, LANGUAGE_FILE))
    if found is None or which not in found:
        return None
    return found[which] | {"weights": found[DIGESTS][WEIGHTS_FILE][:12]}


def pretraining() -> Json | None:
    """What `python -m lab pretraining` measured; None if it did not come with the app.

    Raises:
        ValueError: the file is damaged.
    """
    path = catalogue.BUNDLED / catalogue.LANGUAGE / PRETRAINING_FILE
    if not path.is_file():
        return None
    key = (PRETRAINING_FILE, str(path), path.stat().st_mtime_ns)
    found: Json = kept("shipped").get(key, lambda: read_json(path))
    return found
