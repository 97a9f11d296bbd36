"""The studies of this server: documents that were shipped, or stand beside a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.study import FOLDER, documents, read
from ui.server import catalogue
from ui.server.stores import kept


def known() -> dict[str, Path]:
    """The documents by name: `twins`, or `en-pt/importance` beside a model."""
    found = {path.stem: path for path in documents([catalogue.ROOT / "assets" / FOLDER])}
    models = catalogue.available() | catalogue.language_models()
    for model, directory in models.items():
        found |= {f"{model}/{path.stem}": path for path in documents([directory / FOLDER])}
    return found


def study(path: Path) -> dict[str, Any]:
    """The document in a file.

    Raises:
        CheckpointError: the file is damaged.
    """
    found: dict[str, Any] = kept("measured").get((str(path), path.stat().st_mtime_ns), lambda: read(path))
    return found
