"""Measurements that ship with the app, each in a file that is read once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ui.server.stores import kept

Found = TypeVar("Found")


def shipped(
    path: Path,  # the file; it is read again if it changed
    read: Callable[[Path], Found],  # reads it
) -> Found | None:
    """What a file holds; None if it is not here.

    Raises:
        ValueError: the file is damaged.
    """
    if not path.is_file():
        return None
    found: Found = kept("shipped").get((str(path), path.stat().st_mtime_ns), lambda: read(path))
    return found
