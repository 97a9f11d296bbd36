"""A claim on a folder that ends with the process, however that ends."""

from __future__ import annotations

from pathlib import Path
from typing import IO


def claimed(path: Path) -> IO[str] | None:
    """An open file that no other process can claim while it stays open; None if another one has it.

    On systems without `flock` (Windows) every claim is granted.
    """
    file = path.open("w", encoding="utf-8")
    try:
        import fcntl
    except ImportError:
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file
