"""The files of a Firefox model: a folder, or a zip or tar of one."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import IO

from transformer.storage.files import CheckpointError

MODEL = "model.*.bin"
VOCABULARIES = ("vocab.*.spm", "srcvocab.*.spm", "trgvocab.*.spm")
MAX_UNPACKED_BYTES = 2 * 2**30


def has_firefox(path: Path) -> bool:
    """True if a folder or an archive holds a model in Firefox's format."""
    names = [each.name for each in path.iterdir()] if path.is_dir() else _names(path)
    return any(fnmatch(name, MODEL) for name in names) and any(
        fnmatch(name, pattern) for name in names for pattern in VOCABULARIES
    )


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The folder itself, or one with an archive's files, which is then removed.

    CheckpointError if the archive is damaged or too large.
    """
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made) / path.name.partition(".")[0]
        directory.mkdir()
        try:
            _unpack(path, directory)
        except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{path} is damaged or no archive: {error}.") from error
        yield directory


def only(directory: Path, pattern: str) -> Path:
    """The one file of a name; CheckpointError if there is none, or more than one."""
    found = sorted(directory.glob(pattern))
    if not found:
        raise CheckpointError(f"{directory} has no {pattern}, so it is no complete model of Firefox.")
    if len(found) > 1:
        raise CheckpointError(
            f"{directory} has {found[0].name} and {found[1].name}; leave only the files of one model."
        )
    return found[0]


def _names(path: Path) -> list[str]:
    return [name for name, *_ in _members(path)] if path.is_file() else []


def _members(path: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Name without folders, size and content of each plain file of an archive; none for any other file."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    with archive.open(entry) as file:
                        yield Path(entry.filename).name, entry.file_size, file
    elif tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and (content := archive.extractfile(member)):
                    yield Path(member.name).name, member.size, content


def _unpack(path: Path, directory: Path) -> None:
    left = MAX_UNPACKED_BYTES
    for name, size, file in _members(path):
        if any(fnmatch(name, pattern) for pattern in (MODEL, *VOCABULARIES)):
            left -= size
            if left < 0:
                raise ValueError(f"its files have more than {MAX_UNPACKED_BYTES:,} bytes")
            if (directory / name).exists():
                raise ValueError(f"it has two files named {name}")
            with (directory / name).open("wb") as written:
                shutil.copyfileobj(file, written)
