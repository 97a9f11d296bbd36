"""What `python -m transformer language` measured of a language model, which ships beside it."""

from __future__ import annotations

from typing import Any

from transformer.storage.description import LANGUAGE_FILE
from transformer.storage.marks import measured
from ui.server import catalogue
from ui.server.stores import kept

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
