"""What `python -m transformer cost` measured, which ships with the app."""

from __future__ import annotations

from typing import Any

from transformer.storage.files import read_json
from ui.server import catalogue
from ui.server.stores import kept

FILE = catalogue.ROOT / "assets" / "cost.json"
Json = dict[str, Any]


def measured() -> Json | None:
    """The measurements; None if there are none.

    Raises:
        ValueError: the file is damaged.
    """
    if not FILE.is_file():
        return None
    key = (str(FILE), FILE.stat().st_mtime_ns)
    found: Json = kept("costs").get(key, lambda: read_json(FILE))
    return found
