"""A visitor's text file, read within limits."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from transformer.text.pairs import DataError, ReadBounds

T = TypeVar("T")


def read_upload(
    name: str,  # the file's own name; one that ends in `.gz` is unpacked
    content: bytes,  # the file; at most as many bytes as it may unpack to
    bounds: ReadBounds,  # the limits
    read: Callable[[Path, ReadBounds], T],  # reads a file within limits
) -> T:
    """Content of an uploaded file.

    DataError if the file is too large, or the reader refuses it; the message says where, as "the file".
    """
    if len(content) > bounds.total:
        raise DataError(
            f"The file has {len(content) / 2**20:.1f} MiB; at most {bounds.total // 2**20} MiB are allowed."
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
