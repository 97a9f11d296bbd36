"""Arrays as NPZ files that anybody may have written: read within bounds, without pickle and
PyTorch."""

import io
import json
import math
import zipfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from transformer.storage.files import CheckpointError, check_values, write_atomically

Arrays = dict[str, NDArray[np.generic]]
MOST_ARRAYS = 4_096
MOST_BYTES = 8 * 2**20
"""Most bytes that a file beside a model may unpack to."""
_MOST_HEADER = 4_096
_HEAD = "head"
_TYPES = (np.float32, np.float16, np.int16, np.int8, np.uint8, np.bool_)


class ArraysError(ValueError):
    """A file of arrays cannot be read; the message says why in one sentence."""


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Shape, whether columns come first, and type of the array of an open npy file."""
    header: Callable[..., tuple[tuple[int, ...], bool, np.dtype[np.generic]]]
    header = np.lib.format.read_array_header_2_0
    if np.lib.format.read_magic(file) == (1, 0):
        header = np.lib.format.read_array_header_1_0
    return header(file, max_header_size=_MOST_HEADER)


class ArrayFile:
    """An open NPZ file whose names and sizes were checked; nothing is unpacked before it is asked
    for."""

    def __init__(self, source: IO[bytes], most: int) -> None:
        """Reads the list of arrays; ArraysError if they unpack to over ``most`` bytes, or repeat a
        name."""
        self._archive = zipfile.ZipFile(source)
        entries = self._archive.infolist()
        if len(entries) > MOST_ARRAYS or sum(entry.file_size for entry in entries) > most:
            raise ArraysError(
                f"The file unpacks to more than {most // 2**20} MiB, the limit for opening a file."
            )
        if any(
            entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            for entry in entries
        ):
            raise ArraysError("The file is packed in a way that this package does not write.")
        self.entries = {entry.filename.removesuffix(".npy"): entry for entry in entries}  # by array
        if len(self.entries) < len(entries):
            raise ArraysError("The file holds two arrays of one name.")

    def read(self, name: str, types: Collection[object] = _TYPES) -> NDArray[np.generic]:
        """An array; KeyError if there is none, ArraysError if it is of another type, or cut off."""
        entry = self.entries[name]
        with self._archive.open(entry) as file:
            shape, fortran, dtype = npy_header(file)
            if dtype not in types or fortran or any(n < 0 for n in shape):
                raise ArraysError("The file holds an array that no file of this package has.")
            wanted = math.prod(map(int, shape)) * dtype.itemsize
            if wanted > entry.file_size:
                raise ArraysError("The file is cut off: an array is shorter than it says.")
            return np.frombuffer(file.read(wanted), dtype).reshape(shape).copy()


def write_arrays(path: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Writes arrays as one file, atomically."""
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)
    write_atomically(path, packed.getvalue())


def write_packed(
    path: Path, head: Mapping[str, object], arrays: Mapping[str, NDArray[np.generic]]
) -> None:
    """Writes arrays with a head of JSON as one small file, atomically."""
    text = np.frombuffer(json.dumps(head, ensure_ascii=False).encode(), np.uint8)
    write_arrays(path, {_HEAD: text, **arrays})


def read_packed(path: Path, only: tuple[str, ...] | None = None) -> tuple[dict[str, Any], Arrays]:
    """Head and arrays (all, or those named) of a file; CheckpointError if it is missing or
    damaged."""
    try:
        with path.open("rb") as raw:
            file = ArrayFile(raw, MOST_BYTES)
            names = [
                name for name in file.entries if name != _HEAD and (only is None or name in only)
            ]
            head = json.loads(file.read(_HEAD).tobytes())
            check_values(head)
            return dict(head), {name: file.read(name) for name in names}
    except (
        Exception
    ) as error:  # zip, zlib, NumPy's tokenizer and JSON raise twenty kinds for damaged bytes
        raise CheckpointError(f"{path} is damaged; remove it, or write it again.") from error
