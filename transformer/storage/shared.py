"""Files that two models have in common: one names the other's by relative path and SHA-256. No PyTorch.

A tokenizer that is named stands for one's own; a file of weights completes one's own.
"""

from __future__ import annotations

import functools
import hashlib
import os
from contextlib import suppress
from pathlib import Path

from transformer.storage.files import CheckpointError, read_json

SHARED_FILE = "shared.json"


def shared_file(directory: Path, name: str) -> Path | None:
    """The other model's file that a directory names for one of its own; None if it names none.

    CheckpointError if the file is missing, was changed, is the directory's own, is itself only named there,
    or stands outside the folder that holds the directory.
    """
    path = directory / SHARED_FILE
    if not path.exists():
        return None
    entry = read_json(path).get(name)
    if entry is None:
        return None
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("path", "sha256")):
        raise CheckpointError(f"{path} does not say path and sha256 of {name}.")
    own, named = directory.resolve(), (directory / entry["path"]).resolve()
    if own in (named, *named.parents):
        raise CheckpointError(f"{path} names {entry['path']:.80}, which is in its own directory.")
    if own.parent not in named.parents:
        raise CheckpointError(f"{path} names {entry['path']:.80}, which is outside {own.parent}.")
    if not named.is_file():
        raise CheckpointError(f"{path} names {entry['path']:.80}, which {_absent(own, named)}.")
    status = named.stat()
    if _digest(named, status.st_size, status.st_mtime_ns) != entry["sha256"]:
        raise CheckpointError(f"{named} is not the file that {path} names: its SHA-256 differs.")
    return named


def _absent(own: Path, named: Path) -> str:
    """Why a named file is not there: nobody has it, or a circle of directories that name one another."""
    passed = [own.name]
    while (listed := named.parent / SHARED_FILE).is_file():
        passed.append(named.parent.name)
        found = read_json(listed).get(named.name)
        if not isinstance(found, dict) or not isinstance(found.get("path"), str):
            break
        named = (named.parent / found["path"]).resolve()
        if named.is_file():
            return f"is not there, but only named by {listed.parent.name}/{SHARED_FILE}"
        if named.parent.name in passed:
            circle = " → ".join([*passed, named.parent.name])
            return f"nobody has: the directories name one another in a circle ({circle})"
    return "is not there"


def shared_bytes(directory: Path) -> dict[str, int]:
    """Bytes of the files that a directory needs of others, by the name of the other directory.

    Nothing is checked here: what cannot be read, or is not there, counts nothing.
    """
    path, found = directory / SHARED_FILE, dict[str, int]()
    entries: object = None
    with suppress(CheckpointError, OSError):
        entries = read_json(path)
    for each in entries.values() if isinstance(entries, dict) else ():
        named = (directory / str(each.get("path"))).resolve() if isinstance(each, dict) else directory
        if named.is_file():
            found[named.parent.name] = found.get(named.parent.name, 0) + named.stat().st_size
    return found


def entry(directory: Path, path: Path) -> dict[str, str]:
    """Entry of a directory for a file that it names."""
    place = os.path.relpath(path.resolve(), directory.resolve())
    return {"path": Path(place).as_posix(), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def file_of(directory: Path, name: str) -> Path:
    """A directory's own file, or the one that it names in its place; errors as in ``shared_file``."""
    own = directory / name
    return own if own.exists() else shared_file(directory, name) or own


@functools.lru_cache(maxsize=64)
def _digest(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
