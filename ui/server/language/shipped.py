"""What `python -m transformer language` measured of a language model, which ships beside it."""

from __future__ import annotations

from typing import Any

from transformer.storage.description import LANGUAGE_FILE, WEIGHTS_FILE
from transformer.storage.marks import DIGESTS, measured
from ui.server import catalogue
from ui.server.stores import kept

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
