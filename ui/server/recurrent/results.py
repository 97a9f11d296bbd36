"""What was measured on the recurrent twins, and how soft and hard attention learn; both ship with the app."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformer.storage.files import read_json
from ui.server import catalogue
from ui.server.training.shipped import shipped

RESULTS, HARD = "results.json", "hard_attention.json"
Json = dict[str, Any]


def measured() -> Json | None:
    """What `python -m lab recurrent` measured; None if it was never run.

    Raises:
        ValueError: the file is damaged.
    """
    return _first(RESULTS)


def hard_attention() -> Json | None:
    """What `python -m lab hard-attention` measured; further as `measured`."""
    return _first(HARD)


def _first(name: str) -> Json | None:
    folders: tuple[Path, ...] = catalogue.BUNDLED, catalogue.own_models()
    files = [folder / catalogue.RECURRENT / name for folder in folders]
    found = next((file for file in files if file.is_file()), None)
    return None if found is None else shipped(found, read_json)
