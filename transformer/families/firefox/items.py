"""The items of a ``model.*.bin``: names, types and shapes, read before any number, and then the numbers.

All integers are little-endian. u64 version, u64 count; per item four u64 (length of the name with its NUL,
type, number of dimensions, bytes); all names; all shapes as i32; u64 padding and as many bytes; all data.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transformer.storage.files import CheckpointError

VERSION = 1
FLOAT32, INT8, TEXT = 0x0404, 0x4101, 0x0101
MULTIPLIER_BYTES = 4
MAX_ITEMS, MAX_NAME, MAX_DIMENSIONS = 10_000, 1_000, 4
MAX_FILE_BYTES = 2 * 2**30


@dataclass(frozen=True)
class FileItem:
    """One item of the file, whose numbers have not been read."""

    name: str  # its name
    type: int  # ``FLOAT32``, ``INT8``, or ``TEXT``; an item of another type cannot be read
    shape: tuple[int, ...]  # shape of its matrix, (inputs, outputs)
    start: int  # where its bytes begin in the file
    nbytes: int  # how many bytes it has


class Items:
    """A file of items, whose sizes and offsets were checked; CheckpointError if it is none, or cut off."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            size = path.stat().st_size
            if not 0 < size <= MAX_FILE_BYTES:
                raise CheckpointError(
                    f"{path} has {size:,} bytes; a model of Firefox has 1 to {MAX_FILE_BYTES:,}."
                )
            self._bytes = np.memmap(path, np.uint8, "r")
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
        try:
            self.found = {item.name: item for item in self._read()}
        except (struct.error, UnicodeDecodeError) as error:
            raise self._damaged("its table of items is cut off or damaged") from error

    def text(self, name: str) -> str:
        """The content of a text; CheckpointError if there is no such item, or it is no text."""
        item = self._item(name, (TEXT,))
        try:
            return bytes(self._data(item)).rstrip(b"\0").decode()
        except UnicodeDecodeError as error:
            raise self._damaged(f"its item {name} is no text") from error

    def numbers(self, name: str, *, rows_are_outputs: bool = True) -> np.ndarray:
        """A copy of a matrix or vector as float32; a stored transposed matrix is turned to (inputs, outputs).

        CheckpointError if there is no such item, it holds no numbers, or one of them is not finite.
        """
        item = self._item(name, (FLOAT32, INT8))
        data = self._data(item)
        if item.type == FLOAT32:
            found = data.view("<f4").astype(np.float32).reshape(item.shape)
        else:
            count = math.prod(item.shape)
            (multiplier,) = data[count : count + MULTIPLIER_BYTES].view("<f4")
            if not np.isfinite(multiplier) or multiplier <= 0:
                raise self._damaged(f"the multiplier of {name} is {multiplier}")
            found = data[:count].view(np.int8).astype(np.float32) / multiplier
            found = found.reshape(item.shape[::-1]).T if rows_are_outputs else found.reshape(item.shape)
        if not np.isfinite(found).all():
            raise CheckpointError(f"{self.path} contains NaN or infinite values.")
        return found

    def _read(self) -> Iterator[FileItem]:
        version, count = self._unpack("<QQ", 0)
        if version != VERSION:
            raise CheckpointError(
                f"{self.path} is no model of Firefox: its version is {version:,}, not {VERSION}."
            )
        if count > MAX_ITEMS:
            raise self._damaged(f"it names {count:,} items")
        heads = [self._unpack("<4Q", 16 + 32 * i) for i in range(count)]
        place, names = 16 + 32 * count, []
        for length, *_ in heads:
            if not 1 < length <= MAX_NAME:
                raise self._damaged(f"a name has {length:,} bytes")
            names.append(bytes(self._slice(place, length - 1)).decode())
            place += length
        if len(set(names)) != count:
            raise self._damaged("two items have one name")
        shapes = []
        for _, _, dimensions, _ in heads:
            if not 1 <= dimensions <= MAX_DIMENSIONS:
                raise self._damaged(f"an item has {dimensions:,} dimensions")
            shapes.append(self._unpack(f"<{dimensions}i", place))
            place += 4 * dimensions
        (padding,) = self._unpack("<Q", place)
        place += 8 + padding
        for name, (_, kind, _, nbytes), shape in zip(names, heads, shapes, strict=True):
            self._check(name, kind, shape, nbytes)
            self._slice(place, nbytes)
            yield FileItem(name, kind, shape, place, nbytes)
            place += nbytes

    def _check(self, name: str, kind: int, shape: tuple[int, ...], nbytes: int) -> None:
        if min(shape) < 1:
            raise self._damaged(f"{name} has the shape {shape}")
        count = math.prod(shape)
        least = {FLOAT32: 4 * count, INT8: count + MULTIPLIER_BYTES, TEXT: count}.get(kind, 0)
        if nbytes < least:
            raise self._damaged(f"{name} has {nbytes:,} bytes, but its shape {shape} needs {least:,}")
        if kind == FLOAT32 and nbytes % 4:
            raise self._damaged(f"{name} has {nbytes:,} bytes, which is no number of float32 values")

    def _item(self, name: str, kinds: tuple[int, ...]) -> FileItem:
        if name not in self.found:
            raise CheckpointError(f"{self.path} has no item {name!r:.80}, which a model of Firefox needs.")
        item = self.found[name]
        if item.type not in kinds:
            raise CheckpointError(
                f"{self.path} holds {name} in the type {item.type:#06x}, which this package does not read."
            )
        return item

    def _data(self, item: FileItem) -> np.ndarray:
        used = 4 * math.prod(item.shape) if item.type == FLOAT32 else item.nbytes
        return self._slice(item.start, used)

    def _unpack(self, layout: str, start: int) -> tuple[int, ...]:
        return struct.unpack(layout, bytes(self._slice(start, struct.calcsize(layout))))

    def _slice(self, start: int, length: int) -> np.ndarray:
        if start + length > len(self._bytes):
            raise self._damaged("it is cut off, or a length in it is too large")
        return self._bytes[start : start + length]

    def _damaged(self, reason: str) -> CheckpointError:
        return CheckpointError(f"{self.path} is damaged or no model of Firefox: {reason}.")
