"""Measurements: files that ship with the app or stand beside a model, read once."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from explorer.app.server import models
from explorer.app.server.source import Source
from explorer.app.server.stores import Recent
from transformer.exports.maps import MappedRun, load_maps
from transformer.storage.description import measured, model_digests, read_heads
from transformer.storage.files import read_json

T = TypeVar("T")
MEASURED = Recent[Any](48)
POSITIONS = "positions/results.json"


def shipped(name: str, read: Callable[[Path], Any] = read_json) -> Any:
    """Content of a file of the app, such as `positions/results.json`; None if it was never measured.

    ValueError if the file is damaged.
    """
    folders = models.ROOT / "assets", models.BUNDLED, models.own_models()
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if path is None:
        return None
    return MEASURED.get((str(path), path.stat().st_mtime_ns), lambda: read(path))


def beside(source: Source, read: Callable[[Path], T]) -> T:
    """Value that a function reads from the directory of a model, once until the directory changes.

    KeyError if the source is a file, which has no directory; ValueError if what is read is damaged.
    """
    path = _directory(source)
    found: T = MEASURED.get((read, source), lambda: read(path))
    return found


def described(source: Source, file: str) -> dict[str, Any]:
    """What a file of `transformer.storage.description` beside a model says; further as `beside`.

    Empty if there is no such file, or if it was measured on other weights.
    """
    path = _directory(source)
    found: dict[str, Any] = MEASURED.get((file, source), lambda: measured(path, file) or {})
    return found


def _directory(source: Source) -> Path:
    if source.path is None:
        raise KeyError(source.name)
    return source.path


def damaged_heads(source: Source) -> tuple[str, ...]:
    """That the file of heads beside a model is damaged, in a sentence; empty if it is not."""
    with suppress(OSError, ValueError, KeyError):
        return read_heads(_directory(source), source.config)[1]
    return ()


def first(directory: Path) -> MappedRun | None:
    """The first example as the model of a directory translated it: a cold server draws it at once.

    None if `python -m explorer survey` was not run with this very model.
    """
    with suppress(OSError, ValueError, KeyError):
        run = load_maps(directory / "first.npz")
        return run if model_digests(directory) == run.digests else None
    return None
