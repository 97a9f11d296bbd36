"""The mark of a file beside a model that was measured on it: the SHA-256 of that model's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from transformer.storage.description import model_digests
from transformer.storage.files import read_json
from transformer.storage.packed import read_packed
from transformer.storage.typed import read_typed

T = TypeVar("T")

DIGESTS = "digests"
"""The field of a JSON file that holds the SHA-256 of the model's files."""


def measured(directory: Path, name: str) -> dict[str, Any] | None:
    """Content of a file beside a model; None if absent or another model's; CheckpointError if damaged."""
    path = directory / name
    if not path.is_file():
        return None
    values = _head(path)
    return values if values.get(DIGESTS) == model_digests(directory) else None


def measured_as(directory: Path, name: str, read: Callable[[dict[str, Any]], T]) -> T | None:
    """The same, as ``read`` understands it."""
    return None if measured(directory, name) is None else read_typed(directory / name, read)


def _head(path: Path) -> dict[str, Any]:
    return read_packed(path, only=())[0] if path.suffix == ".npz" else read_json(path)
