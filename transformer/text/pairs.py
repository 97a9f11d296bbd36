"""Files of sentence pairs, read and checked."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


class DataError(ValueError):
    """A data file cannot be used; the message names the file, the line and the reason."""


@dataclass(frozen=True)
class SentencePair:
    """One sentence and its translation, as plain text."""

    source: str
    target: str


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Lines of a UTF-8 text file with their numbers from 1; `.gz` files are unpacked.

    Raises:
        DataError: The file is missing, is damaged, or is not UTF-8.
    """
    path = Path(path)
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}:{number}: this line is not UTF-8 text (byte {error.start + 1}).") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path}:{number + 1}: the gzip file is damaged or cut off here ({error})."
        ) from error
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror or error}.") from error


def read_pairs(path: str | Path) -> list[SentencePair]:
    """Reads `source<TAB>target` lines.

    Raises:
        DataError: A line has another number of columns or an empty one, or the file has no lines.
    """
    pairs = [_pair(path, number, line) for number, line in read_lines(path)]
    if not pairs:
        raise DataError(f"{path}: the file is empty; it needs one `source<TAB>target` pair a line.")
    return pairs


def _pair(path: str | Path, number: int, line: str) -> SentencePair:
    columns = line.split("\t")
    if len(columns) != 2:
        raise DataError(
            f"{path}:{number}: expected source, tab, target; found {len(columns)} column"
            f"{'' if len(columns) == 1 else 's'}."
        )
    source, target = columns
    if not source.strip() or not target.strip():
        raise DataError(f"{path}:{number}: the {'target' if source.strip() else 'source'} is empty.")
    return SentencePair(source, target)
