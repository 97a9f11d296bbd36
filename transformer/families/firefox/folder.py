"""The files of a Firefox model: a folder, packed or not, or a zip or tar of one."""

from __future__ import annotations

import gzip
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from fnmatch import fnmatch
from pathlib import Path
from typing import IO

from transformer.storage.files import CheckpointError

MODEL = "model.*.bin"
VOCABULARIES = ("vocab.*.spm", "srcvocab.*.spm", "trgvocab.*.spm")
PACKINGS = (".gz", ".zst", ".xz", ".bz2", ".br")
"""Endings of packed files; the public repositories have `.gz`, the only one that is unpacked here."""
_PART = 2**20
_DAMAGES = (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError, ValueError, RuntimeError)
MAX_UNPACKED_BYTES = 2**29
"""Ten times what the largest of these models has; unpacking so much takes some seconds."""


def has_firefox(path: Path) -> bool:
    """True if a folder or an archive holds a model in Firefox's format, packed or not."""
    try:
        names = list(map(_bare, _names(path)))
    except _DAMAGES:
        return False
    return any(fnmatch(name, MODEL) for name in names) and any(
        fnmatch(name, pattern) for name in names for pattern in VOCABULARIES
    )


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The folder itself, or one with the files of an archive or with packed files, which is then removed.

    CheckpointError if the archive is damaged, too large, or packed in a way that is not known here.
    """
    if path.is_dir() and not any(_is_wanted(name) and name != _bare(name) for name in _names(path)):
        yield path
        return
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made) / path.name.partition(".")[0]
        directory.mkdir()
        try:
            _unpack(path, directory)
        except CheckpointError:
            raise
        except _DAMAGES as error:
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
    folder = path.is_dir()
    return [each.name for each in path.iterdir()] if folder else [name for name, _ in _members(path)]


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name without folders and content of each file of a folder or an archive; none for any other file."""
    if path.is_dir():
        for each in path.iterdir():
            if each.is_file():
                with each.open("rb") as file:
                    yield each.name, file
    elif path.is_file() and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    with archive.open(entry) as packed:
                        yield Path(entry.filename).name, packed
    elif path.is_file() and tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and (content := archive.extractfile(member)):
                    yield Path(member.name).name, content


def _bare(name: str) -> str:
    """The name of a file without the ending of its packing."""
    stem, dot, ending = name.rpartition(".")
    return stem if f"{dot}{ending}" in PACKINGS else name


def _is_wanted(name: str) -> bool:
    return any(fnmatch(_bare(name), pattern) for pattern in (MODEL, *VOCABULARIES))


def _unpack(path: Path, directory: Path) -> None:
    """Copies the files of a model, and from a folder those that stand beside it, unpacked."""
    left = MAX_UNPACKED_BYTES
    for name, file in _members(path):
        if not _is_wanted(name) and not path.is_dir():
            continue
        bare = _bare(name) if _is_wanted(name) else name
        if bare != name and not name.endswith(".gz"):
            raise CheckpointError(f"{path / name} is packed in a way that is not read here; unpack it first.")
        if (directory / bare).exists():
            raise ValueError(f"it has two files named {bare}")
        unzipped = gzip.GzipFile(fileobj=file) if bare != name else nullcontext(file)
        with unzipped as content, (directory / bare).open("wb") as written:
            while part := content.read(min(_PART, left + 1)):
                if (left := left - len(part)) < 0:
                    raise ValueError(f"its files have more than {MAX_UNPACKED_BYTES:,} bytes")
                written.write(part)
