"""What `python -m transformer language` measured of a language model, which ships beside it."""

from __future__ import annotations

from typing import Any

from transformer.storage.description import LANGUAGE_FILE
from transformer.storage.files import read_json
from transformer.storage.marks import measured
from ui.server import catalogue
from ui.server.stores import kept

PRETRAINING_FILE = "pretraining.json"
Json = dict[str, Any]


def part(name: str, which: str) -> Json | None:
    """One part of the measurements of a model, such as ``induction``; None if it was not measured.

    Raises:
        ValueError: the file is damaged.
        KeyError: there is no model of that name.
    """
    directory = catalogue.directory(name)
    key = (LANGUAGE_FILE, str(directory), catalogue.changed(directory))
    found: Json | None = kept("shipped").get(key, lambda: measured(directory, LANGUAGE_FILE))
    return (found or {}).get(which)


def pretraining() -> Json | None:
    """What `python -m transformer pretraining` measured; None if it did not come with the app.

    Raises:
        ValueError: the file is damaged.
    """
    path = catalogue.BUNDLED / catalogue.LANGUAGE / PRETRAINING_FILE
    if not path.is_file():
        return None
    key = (PRETRAINING_FILE, str(path), path.stat().st_mtime_ns)
    found: Json = kept("shipped").get(key, lambda: read_json(path))
    return found
