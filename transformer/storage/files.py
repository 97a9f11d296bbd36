"""Reads JSON, writes files atomically, and defines the error for model files that cannot be
used."""

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

MAX_JSON_BYTES = MAX_VOCABULARY_BYTES = 16 * 2**20
"""Vocabularies of OPUS-MT are below one MiB.

Each byte of a file may take some 30 bytes of memory.
"""
MAX_JSON_ENTRIES = 500_000
"""Largest number of values in a JSON file, each of which takes some 100 bytes; M2M-100 has 128,000
pieces."""
MAX_TOKENIZER_BYTES = 64 * 2**20
"""Largest number of bytes in a ``tokenizer.json``, which Python does not parse; those of NLLB have
17 MB."""
SAFETENSORS, PYTORCH = "model.safetensors", "pytorch_model.bin"
"""Names of the files of weights, whole or as the stems of shards."""
MAX_SHARDS = 256
POINTER = b"version https://git-lfs"
_DEEPEST = 32
"""Objects and lists within one another in a JSON file of a model."""


class CheckpointError(ValueError):
    """A directory cannot be used as a model; the message says which file is wrong and how."""


UNFINISHED = ".*.part"
"""Pattern of unfinished files that a killed process left behind."""


@contextmanager
def opened_atomically(path: Path) -> Iterator[IO[bytes]]:
    """A file beside one, which takes its place once the block has written it; OSError says why not.

    Readers see the old or the new content, even after a crash.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if error.strerror is None:  # says already which file could not be written
            raise
        raise OSError(f"{path} could not be written: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)
    descriptor = os.open(path.parent, os.O_RDONLY)  # which holds the name
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file as ``opened_atomically``."""
    with opened_atomically(path) as file:
        file.write(content)


def write_together(folder: Path, contents: Mapping[str, bytes | Path]) -> None:
    """Writes some files of a folder, each its content or a copy of a file, as
    ``opened_atomically``.

    The first takes its place last, and none does before all are written.
    """
    with ExitStack() as opened:
        for name, content in contents.items():
            file = opened.enter_context(opened_atomically(folder / name))
            if isinstance(content, bytes):
                file.write(content)
            else:
                with content.open("rb") as source:
                    shutil.copyfileobj(source, file)
            file.flush()


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


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Writes a JSON object atomically, a line for each of its fields."""
    fields = (
        f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    )
    write_atomically(path, ("{\n" + ",\n".join(fields) + "\n}\n").encode())


def check_pointer(path: Path) -> None:
    """CheckpointError if a file is a pointer that Git LFS left in the place of the file."""
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(POINTER)) == POINTER:
            raise CheckpointError(f"{path} is a pointer of Git LFS; run git lfs pull.")


def check_values(values: object) -> None:
    """ValueError if JSON has half surrogates, numbers that no float holds, or a great depth."""
    level = [values]
    for _ in range(_DEEPEST + 1):
        if not level:
            return
        # all texts of a level at once: a vocabulary has some 100,000
        "".join([value for value in level if isinstance(value, str)]).encode()
        numbers = [value for value in level if isinstance(value, int | float)]
        if not all(map(sys.float_info.max.__ge__, map(abs, numbers))):
            raise ValueError("has a number that no float holds")
        parents = [value for value in level if isinstance(value, dict | list)]
        level = [member for parent in parents for member in _members(parent)]
    if level:
        raise ValueError(f"has more than {_DEEPEST} levels")


def _members(parent: dict[str, object] | list[object]) -> Iterable[object]:
    """What a value of JSON consists of: names and values of an object, or entries of a list."""
    if isinstance(parent, dict):
        return chain(parent.keys(), parent.values())
    return parent


def check_vocabulary(path: Path, most: int = MAX_VOCABULARY_BYTES) -> None:
    """CheckpointError if a file is too large for a vocabulary, or a pointer to one."""
    check_pointer(path)
    if path.stat().st_size > most:
        reason = "so it is not the vocabulary of a translation model"
        raise CheckpointError(f"{path} is larger than {most // 2**20} MiB, {reason}.")


def read_json(path: Path, most: int = MAX_JSON_ENTRIES) -> dict[str, Any]:
    """Reads a JSON object of at most so many values, which are counted before any is made.

    CheckpointError if the file is missing, unreadable, too large, or not a JSON object.
    """
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path} is not a file.")
    if path.is_file() and path.stat().st_size > MAX_JSON_BYTES:
        raise CheckpointError(
            f"{path} is larger than 16 MiB, which is too large for a JSON file of a model."
        )
    check_pointer(path)
    try:
        content = path.read_bytes()
        if sum(map(content.count, (b",", b"[", b"{"))) > most:
            raise CheckpointError(
                f"{path} has more than {most:,} values, too many for this file of a model."
            )
        values = json.loads(content.decode())
        check_values(values)
    except FileNotFoundError:
        raise CheckpointError(
            f"{path.parent} has no {path.name}, so it is not a model directory."
        ) from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON; it is damaged or cut off.") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} is not a JSON object.")
    return values
