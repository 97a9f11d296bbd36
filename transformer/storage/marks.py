"""The mark of a file beside a model that was measured on it: the SHA-256 of that model's files.

JSON files and the survey hold them as `digests`; `means.safetensors` and the card hold the hash of the
weights.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open

from transformer.storage.description import (
    CARD_FILE,
    MEANS_FILE,
    MEASURED,
    model_digests,
    read_card,
    weights_hash,
)
from transformer.storage.files import CheckpointError, read_json
from transformer.storage.means import WEIGHTS
from transformer.storage.packed import read_packed
from transformer.storage.typed import read_typed

T = TypeVar("T")

DIGESTS = "digests"
"""The field of a JSON file that holds the SHA-256 of the model's files."""
_MARK = re.compile(r"Measured on the weights `([0-9a-f]{16})`")


def mark(weights: str) -> str:
    """The line by which a card says which weights its numbers belong to."""
    return f"Measured on the weights `{weights}` (the first digits of their SHA-256)."


def marks(directory: Path) -> dict[str, bool]:
    """The files beside a model; True if one says that it was measured on this very model."""
    digests, weights = model_digests(directory), weights_hash(directory)
    files = (*MEASURED, MEANS_FILE, CARD_FILE)
    return {
        name: _mark_of(directory / name) == (digests if name in MEASURED else weights)
        for name in files
        if (directory / name).exists()
    }


def of_another_model(directory: Path) -> list[str]:
    """The files beside a model that were measured on another one, or do not say on which."""
    return [name for name, own in marks(directory).items() if not own]


def measured(directory: Path, name: str) -> dict[str, Any] | None:
    """Content of one of ``MEASURED``; None if absent or another model's; CheckpointError if damaged."""
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


def _mark_of(path: Path) -> object:
    if path.name in MEASURED:
        return _head(path).get(DIGESTS)
    if path.name == MEANS_FILE:
        return _of_means(path)
    found = _MARK.search(read_card(path.parent))
    return found[1] if found else None


def _of_means(path: Path) -> str | None:
    try:
        with safe_open(path, framework="np") as file:
            return (file.metadata() or {}).get(WEIGHTS)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged ({error}).") from error
