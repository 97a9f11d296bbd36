"""Sentence pairs: those of a visitor's file, read within limits, and those whose links were made by
hand."""

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from explorer.app.server.source import Source
from explorer.lenses.words import languages
from explorer.lenses.words.links import GoldPair, read_gold
from transformer.text.pairs import DataError, ReadBounds

T = TypeVar("T")
LARGEST = 2 * 2**20
"""Most bytes of a file, packed and unpacked."""
BOUNDS = ReadBounds(total=LARGEST, line=64 * 2**10, lines=2_000)


def read_upload(
    name: str,  # the file's own name; one that ends in `.gz` is unpacked
    content: bytes,  # the file; at most as many bytes as it may unpack to
    read: Callable[[Path, ReadBounds], T],  # reads a file within limits
    bounds: ReadBounds = BOUNDS,  # the limits
) -> T:
    """Content of an uploaded file.

    DataError if the file is too large, or the reader refuses it; the message says where, as "the
    file".
    """
    if len(content) > bounds.total:
        raise DataError(
            f"The file has {len(content) / 2**20:.1f} MiB; at most {bounds.total // 2**20} MiB are "
            "allowed."
        )
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / ("upload.gz" if name.endswith(".gz") else "upload")
            path.write_bytes(content)
            try:
                return read(path, bounds)
            except DataError as error:
                raise DataError(str(error).replace(str(path), "the file")) from error
    except OSError as error:
        raise DataError("The server has no room to unpack the file; try again later.") from error


def linked(source: Source) -> list[GoldPair]:
    """The bundled pairs of a model's languages with links made by hand.

    None if the file is missing.
    """
    return linked_in(languages.sample_of(source.path).alignments)


@cache
def linked_in(file: str) -> list[GoldPair]:
    """The pairs of a bundled file, such as `alignments.tsv`; none if it is missing."""
    path = languages.FOLDER / file
    return read_gold(path) if path.is_file() else []
