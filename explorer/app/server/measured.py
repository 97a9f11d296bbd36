"""Measurements: files that ship with the app or stand beside a model, read once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from explorer.app.server import catalogue
from explorer.app.server.source import Source
from explorer.app.server.stores import Recent
from explorer.lenses.heads.roles import surveyed
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
    for folder in (catalogue.ROOT / "assets", catalogue.BUNDLED, catalogue.own_models()):
        if (path := folder / name).is_file():
            return MEASURED.get((str(path), path.stat().st_mtime_ns), lambda: read(path))
    return None


def beside(source: Source, read: Callable[[Path], T]) -> T:
    """Value that a function reads from the directory of a model, once until the directory changes.

    Raises:
        KeyError: it is a file, which has no directory.
        ValueError: a file is damaged.
    """
    if source.path is None:
        raise KeyError(source.name)
    path = source.path
    found: T = MEASURED.get((read, source), lambda: read(path))
    return found


def described(source: Source, file: str) -> dict[str, Any]:
    """What a file of `transformer.storage.description` beside a model says; further as `beside`.

    Returns:
        An empty dictionary if there is none, or if it was measured on other weights.
    """
    return beside(source, _of_the_model(file))


@cache
def _of_the_model(file: str) -> Callable[[Path], dict[str, Any]]:
    return lambda path: measured(path, file) or {}


def damaged_heads(source: Source) -> tuple[str, ...]:
    """That the file of heads beside a model is damaged, in a sentence; empty if it is not."""
    with suppress(OSError, ValueError, KeyError):
        return () if source.path is None else read_heads(source.path, source.config)[1]
    return ()


def roles(source: Source) -> dict[str, list[list[str]]]:
    """What every head does over many sentences, by kind, layer and head; an empty text for a mixed head.

    Returns:
        An empty dictionary if the model has no survey of its heads.
    """
    with suppress(OSError, ValueError, KeyError):
        return beside(source, surveyed)
    return {}


def first(directory: Path) -> MappedRun | None:
    """The first example as the model of a directory translated it: a cold server draws it at once.

    Returns:
        None if `python -m explorer survey` was not run with this very model.
    """
    with suppress(OSError, ValueError, KeyError):
        run = load_maps(directory / "first.npz")
        return run if model_digests(directory) == run.digests else None
    return None
