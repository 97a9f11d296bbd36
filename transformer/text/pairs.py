"""Reads and checks files of sentence pairs."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


class DataError(ValueError):
    """A data file cannot be used; the message names the file, the line and the reason."""


@dataclass(frozen=True)
class SentencePair:
    """One sentence and its translation, as plain text."""

    source: str
    target: str
    line: int = field(default=0, compare=False, repr=False)  # where it stands in its file, from 1


@dataclass(frozen=True)
class ReadBounds:
    """Limits on how much of a text file is read, counted on the unpacked bytes during reading.

    A gzip file of 17 kB can unpack to gigabytes, so the size of the file itself is no limit.
    """

    total: int = 2**36  # largest number of bytes in the file
    line: int = 2**20  # largest number of bytes in one line
    lines: int = 10**9  # largest number of lines


TRUSTED = ReadBounds()
"""The limits for files chosen by the person who runs the program."""


def read_lines(
    path: str | Path, bounds: ReadBounds = TRUSTED, errors: str = "strict"
) -> Iterator[tuple[int, str]]:
    """Yields the lines of a UTF-8 text file, numbered from 1; `.gz` files are unpacked.

    With "surrogateescape" for ``errors``, bytes that are not UTF-8 are lone surrogates.
    DataError if the file is missing, is damaged, is not UTF-8, or exceeds the bounds.
    """
    path = Path(path)
    number, left = 0, bounds.total
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            while raw := file.readline(bounds.line + 1):
                number = number + 1
                left = left - len(raw)
                if len(raw) > bounds.line:
                    raise DataError(
                        f"{path}:{number}: this line has more than {_size(bounds.line)}."
                    )
                if left < 0:
                    raise DataError(f"{path}: the file unpacks to more than {_size(bounds.total)}.")
                if number > bounds.lines:
                    raise DataError(f"{path}: the file has more than {bounds.lines:,} lines.")
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8", errors)
                yield number, text.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}:{number}: this line is not UTF-8 text (byte {error.start + 1})."
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path}:{number + 1}: the gzip file is damaged or cut off here ({error})."
        ) from error
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror or error}.") from error


def filled_lines(path: str | Path, bounds: ReadBounds = TRUSTED) -> Iterator[tuple[int, str]]:
    """The lines of ``read_lines`` that are not blank."""
    return ((number, line) for number, line in read_lines(path, bounds) if line.strip())


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.0f} MiB" if n_bytes >= 2**20 else f"{n_bytes / 2**10:,.0f} KiB"


def read_pairs(path: str | Path, bounds: ReadBounds = TRUSTED) -> list[SentencePair]:
    """Reads `source<TAB>target` lines, without blank ones; DataError if one has not two columns.

    DataError also as for ``read_lines``.
    """
    pairs = [parse_pair(path, number, line) for number, line in filled_lines(path, bounds)]
    if not pairs:
        raise DataError(
            f"{path}: the file is empty; it needs one `source<TAB>target` pair per line."
        )
    return pairs


def parse_pair(path: str | Path, number: int, line: str) -> SentencePair:
    """The pair of one line; DataError, with its place, if it has not two columns or one is
    empty."""
    columns = line.split("\t")
    if len(columns) != 2:
        raise DataError(
            f"{path}:{number}: expected source, tab, target; found {len(columns)} column"
            f"{'' if len(columns) == 1 else 's'}."
        )
    source, target = columns
    if not source.strip() or not target.strip():
        raise DataError(
            f"{path}:{number}: the {'target' if source.strip() else 'source'} is empty."
        )
    return SentencePair(source, target, number)
