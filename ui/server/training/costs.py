"""What `python -m lab cost` measured, which ships with the app."""

from __future__ import annotations

from typing import Any

from transformer.storage.files import read_json
from ui.server import catalogue
from ui.server.training.shipped import shipped

FILE = catalogue.ROOT / "assets" / "cost.json"
Json = dict[str, Any]


def measured() -> Json | None:
    """The measurements; None if there are none.

    Raises:
        ValueError: the file is damaged.
    """
    return shipped(FILE, read_json)
