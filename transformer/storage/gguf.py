"""Reads a GGUF file, as llama.cpp, Ollama and LM Studio keep models: its values and its tensors.

A stranger's file: every count, length and offset in it is compared with the size of the file before
anything is made of it. The library gguf multiplies quantised weights out.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transformer.storage.files import CheckpointError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_VALUES = 10_000
MOST_TENSORS = 20_000
MOST_AXES = 4
MOST_ENTRIES = 2_000_000
"""Entries of a list; the longest are pieces and merges of a vocabulary."""
MOST_HEADER = 128 * 2**20
"""Bytes before the tensors; each entry of a list may take some 100 bytes of memory."""
MOST_TEXT = 2**20
"""Bytes of one text; the longest are chat templates."""
ALIGNMENT = 32
BLOCKS_AT_ONCE = 256
"""Most blocks in what is multiplied out as one row."""

_NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
"""Formats of the numbers, by the type that a file names."""
_TEXT, _LIST = 8, 9
_PLAIN: dict[str, np.dtype[np.generic]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "F64": np.dtype("<f8"),
}
"""Types of weights that are no blocks."""
Scalar = int | float | bool | str
Value = Scalar | list["Value"]


@dataclass(frozen=True)
class BlockType:
    """How the weights of a type lie: in blocks of so many numbers and bytes."""

    name: str
    numbers: int
    bytes: int


@dataclass(frozen=True)
class GgufTensor:
    """A tensor of a file, whose numbers have not been read yet."""

    shape: tuple[int, ...]
    kind: BlockType
    offset: int  # of its first byte in the file

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in the file."""
        return math.prod(self.shape) // self.kind.numbers * self.kind.bytes


class GgufFile:
    """An open file; CheckpointError if it is damaged, cut off, or contradicts itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bytes = _mapped(path)
        cursor = _Cursor(path, self._bytes)
        if cursor.raw(4) != MAGIC:
            raise CheckpointError(f"{path} is not a GGUF file.")
        version = cursor.number("I")
        if version not in VERSIONS:
            raise CheckpointError(f"{path} is GGUF of version {version}; 2 and 3 are read.")
        n_tensors = cursor.count(MOST_TENSORS, "tensors")
        n_values = cursor.count(MOST_VALUES, "values")
        self.values: dict[str, Value] = {}
        for _ in range(n_values):
            name = cursor.text()
            self.values[name] = cursor.value(cursor.number("I"))
        headers = [_header(cursor) for _ in range(n_tensors)]
        self.tensors = self._placed(cursor, headers)

    def _placed(
        self, cursor: _Cursor, headers: list[tuple[str, GgufTensor]]
    ) -> dict[str, GgufTensor]:
        """The tensors by name, with offsets from the start of the file."""
        alignment = self.values.get("general.alignment", ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 8 or alignment & (alignment - 1):
            raise CheckpointError(f"{self.path} aligns its tensors to {alignment!r:.40} bytes.")
        first = -(-cursor.at // alignment) * alignment
        tensors = dict[str, GgufTensor]()
        for name, tensor in headers:
            if name in tensors:
                raise CheckpointError(f"{self.path} holds {name!r:.80} twice.")
            if tensor.offset % alignment:
                raise CheckpointError(f"{self.path} does not align {name!r:.80}.")
            tensors[name] = GgufTensor(tensor.shape, tensor.kind, first + tensor.offset)
        end = first
        for name, tensor in sorted(tensors.items(), key=lambda item: item[1].offset):
            if tensor.offset < end:
                raise CheckpointError(f"{self.path}: {name!r:.80} lies over another tensor.")
            end = tensor.offset + tensor.nbytes
            if end > len(self._bytes):
                raise CheckpointError(f"{self.path} is cut off: {name!r:.80} is not whole.")
        return tensors

    def read(self, name: str) -> NDArray[np.float32]:
        """The numbers of a tensor, multiplied out; CheckpointError if the library cannot."""
        tensor = self.tensors[name]
        stored = np.frombuffer(self._bytes, np.uint8, tensor.nbytes, tensor.offset)
        plain = _PLAIN.get(tensor.kind.name)
        if plain is not None:
            return stored.view(plain).reshape(tensor.shape).astype(np.float32)
        from gguf import GGMLQuantizationType, dequantize

        # blocks do not know of rows, and the library takes 16 rows at a time: few numbers, slowly
        n_blocks = math.gcd(tensor.nbytes // tensor.kind.bytes, BLOCKS_AT_ONCE)
        rows = stored.reshape(-1, n_blocks * tensor.kind.bytes)
        try:
            numbers = dequantize(rows, GGMLQuantizationType[tensor.kind.name])
        except NotImplementedError as error:
            raise CheckpointError(
                f"{self.path} holds {name!r:.80} as {tensor.kind.name}, which the library gguf "
                "does not multiply out."
            ) from error
        return np.ascontiguousarray(numbers.reshape(tensor.shape), np.float32)

    @property
    def quantised(self) -> str:
        """The type in which most bytes of the weights lie, such as Q4_1; empty if all are plain."""
        held = dict[str, int]()
        for tensor in self.tensors.values():
            held[tensor.kind.name] = held.get(tensor.kind.name, 0) + tensor.nbytes
        most = max(held, key=lambda name: held[name], default="")
        return "" if most in ("", "BF16", *_PLAIN) else most


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is empty or cannot be read.") from error


class _Cursor:
    """Reads one value of a file after another, never beyond its end."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.path, self._content = path, content
        self._end = min(len(content), MOST_HEADER)
        self.at = 0

    def raw(self, count: int) -> bytes:
        """The next bytes."""
        self._check(count)
        begin = self.at
        self.at += count
        return self._content[begin : self.at]

    def number(self, form: str) -> int:
        """The next whole number."""
        return int(self.numbers(form, 1)[0])

    def numbers(self, form: str, count: int) -> tuple[int | float | bool, ...]:
        """The next numbers of a form."""
        layout = struct.Struct(f"<{count}{form}")
        self._check(layout.size)
        numbers = layout.unpack_from(self._content, self.at)
        self.at += layout.size
        return numbers

    def count(self, most: int, what: str) -> int:
        """The next number of things."""
        count = self.number("Q")
        if count > most:
            raise CheckpointError(
                f"{self.path} says that it has {count:,} {what}; at most {most:,} are read."
            )
        return count

    def text(self) -> str:
        """The next text."""
        return self.raw(self.count(MOST_TEXT, "bytes in a text")).decode("utf-8", "replace")

    def _texts(self, count: int) -> Iterator[str]:
        """The next texts, as ``text`` reads each: a vocabulary has some 100,000."""
        length_at = struct.Struct("<Q").unpack_from
        for _ in range(count):
            begin = self.at + 8
            if begin > self._end:
                break
            (length,) = length_at(self._content, self.at)
            end = begin + length
            if length > MOST_TEXT or end > self._end:
                break
            yield self._content[begin:end].decode("utf-8", "replace")
            self.at = end
        else:
            return
        self.text()  # says what is wrong

    def value(self, kind: int) -> Value:
        """The next value, of a type that the file names."""
        if kind == _TEXT:
            return self.text()
        if kind in _NUMBERS:
            return self.numbers(_NUMBERS[kind], 1)[0]
        if kind != _LIST:
            raise CheckpointError(f"{self.path} has a value of the unknown type {kind}.")
        inner = self.number("I")
        count = self.count(MOST_ENTRIES, "entries in a list")
        if inner in _NUMBERS:
            return list(self.numbers(_NUMBERS[inner], count))
        if inner != _TEXT:
            raise CheckpointError(f"{self.path} has a list of the unknown type {inner}.")
        return [*self._texts(count)]

    def _check(self, count: int) -> None:
        if self.at + count > self._end:
            raise CheckpointError(f"{self.path} is cut off, or its lengths are wrong.")


def _header(cursor: _Cursor) -> tuple[str, GgufTensor]:
    """Name, shape, type and offset of the next tensor."""
    name = cursor.text()
    n_axes = cursor.number("I")
    if not 0 < n_axes <= MOST_AXES:
        raise CheckpointError(f"{cursor.path} gives {name!r:.80} {n_axes:,} axes.")
    axes = [cursor.number("Q") for _ in range(n_axes)]
    kind = _block_type(cursor, name, cursor.number("I"))
    offset = cursor.number("Q")
    if axes[0] % kind.numbers or not all(axes) or math.prod(axes) > 2**40:
        raise CheckpointError(f"{cursor.path} gives {name!r:.80} sizes that no tensor has.")
    return name, GgufTensor(tuple(reversed(axes)), kind, offset)


def _block_type(cursor: _Cursor, name: str, number: int) -> BlockType:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        kind = GGMLQuantizationType(number)
    except ValueError as error:
        raise CheckpointError(
            f"{cursor.path} holds {name!r:.80} as a type of weights that is not known ({number})."
        ) from error
    numbers, size = GGML_QUANT_SIZES[kind]
    return BlockType(kind.name, numbers, size)
