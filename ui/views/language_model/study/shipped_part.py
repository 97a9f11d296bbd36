"""A picture of a study section, with its caption, its explanation and its export; and what is missing."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from transformer.storage.description import LANGUAGE_FILE, WEIGHTS_FILE
from transformer.storage.marks import DIGESTS
from ui.controls import inform
from ui.server import measured as server

Json = dict[str, Any]


def known(model: str, part: str) -> Json | None:
    """One part of the measurements that came with a model; says so if there is none."""
    with suppress(KeyError, OSError, ValueError):
        found = server.described(model, LANGUAGE_FILE)
        return found[part] | {"weights": found[DIGESTS][WEIGHTS_FILE][:12]}
    inform(
        "No such measurement came with this model. `python -m lab language` makes it and writes "
        "language.json into its directory."
    )
    return None


def measured(model: str, found: Json) -> str:
    """Of which model a measurement is, with the hash of its weights, and when it was made."""
    return f"{model.rpartition('/')[2]} (weights {found['weights']}) · measured on {found['date']}"
