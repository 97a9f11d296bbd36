"""Weights of one's own in files: NPZ, npy, safetensors and JSON, read within bounds.

A file has ``weights``; or ``encoder_attentions``, ``decoder_attentions``, ``cross_attentions``; or
arrays under words of one's own, (layers, heads, queries, keys) each, or as
``transformer.exports.arrays`` takes them. Its ``tokens``, or ``encoder_tokens`` and
``decoder_tokens``, are lists of texts; ``special``, or ``encoder_special`` and
``decoder_special``, say by 1 which of them stand for no text. Names, shapes and types are read
before any numbers. No PyTorch.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from transformer.exports.array_numbers import Numbers, WeightsError
from transformer.exports.array_run import ArrayRun, run_of
from transformer.exports.array_tokens import Tokens, texts_of
from transformer.exports.arrays import OUTPUTS
from transformer.exports.record import TraceFileError
from transformer.run import Translation
from transformer.storage.packed import MOST_ARRAYS, npy_header
from transformer.text.words import is_special

V = TypeVar("V")
MOST_BYTES = 256 * 2**20
"""Most bytes that the arrays of a file may unpack to."""
MOST_JSON = 32 * 2**20
"""Most bytes of JSON, of which every number takes many when it is read."""
FORMATS = ("npz", "npy", "safetensors", "json")
FOREIGN = "The file is damaged, or holds no arrays that can be read."
CUT_OFF = "The file is cut off: an array is shorter than it says."
MANY = f"The file holds more than {MOST_ARRAYS:,} arrays."
SHARED = "The file is damaged: several of its arrays lie over the same bytes."
NOTHING = (
    "The file holds no weights: they have the name weights, or encoder_attentions, "
    "decoder_attentions and cross_attentions."
)
TOKENS: Mapping[str, str] = {
    "tokens": "",
    "encoder_tokens": "encoder",
    "source_tokens": "encoder",
    "key_tokens": "encoder",
    "decoder_tokens": "decoder",
    "target_tokens": "decoder",
    "query_tokens": "decoder",
}
"""Names of tokens in a file, with the side that they are of, if it is one."""
SPECIAL: Mapping[str, str] = {
    name.replace("tokens", "special"): side for name, side in TOKENS.items()
}
"""Names of what says by 0 and 1 which tokens stand for no text, with their side."""
_SAFE_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_ZIP, _NPY = b"PK", b"\x93NUMPY"


@dataclass(frozen=True, kw_only=True)
class _Content:
    """What a file holds, by name."""

    arrays: Mapping[str, Numbers]
    tokens: Mapping[str, Tokens] = field(default_factory=dict)  # as the file has them
    special: Mapping[str, Iterable[int]] = field(default_factory=dict)
    name: str = ""  # of the run


def is_trace(content: bytes) -> bool:
    """Whether a file is a run with its trace (``transformer.exports.npz``), or was one."""
    if not content.startswith(_ZIP):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return "meta.npy" in archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return True


def load_arrays(content: bytes) -> ArrayRun:
    """The run in a file of weights.

    TraceFileError if the file is damaged, foreign or too large; WeightsError if its weights and
    tokens do not fit together.
    """
    try:
        held = _read(content)
    except (TraceFileError, WeightsError):
        raise
    # zip, zlib, NumPy's tokenizer and JSON raise twenty kinds for damaged bytes
    except Exception as error:
        raise TraceFileError(FOREIGN) from error
    known = [name for name in held.arrays if name in OUTPUTS]
    arrays = {name: held.arrays[name] for name in known or held.arrays}
    if not arrays:
        raise TraceFileError(NOTHING)
    tokens = _of_each_side(held.tokens, TOKENS)
    special = _of_each_side(held.special, SPECIAL)
    if len(arrays) == 1 and "" not in tokens and len({*map(_key, tokens.values())}) == 1:
        # one map whose queries and keys are the same text has it once
        tokens = _once(tokens)
        if len({str([*map(str, marks)]) for marks in special.values()}) > 1:
            raise WeightsError("The file says in two ways which tokens are special.")
        special = _once(special)
    return run_of(arrays, _stated(tokens), name=held.name, special=_stated(special))


def _key(tokens: Tokens) -> tuple[str, ...]:
    """What tells the tokens of one side from those of another."""
    return tuple(texts_of(tokens))


def _once(by_side: Mapping[str, V]) -> dict[str, V]:
    """What is said of several sides, as said of both."""
    return dict(zip([""], by_side.values(), strict=False))


def _stated(by_side: Mapping[str, V]) -> V | Mapping[str, V] | None:
    """What is said of both sides, else of each; None if nothing is."""
    return by_side.get("", by_side or None)


def _of_each_side(values: Mapping[str, V], sides: Mapping[str, str]) -> dict[str, V]:
    """What a file says of each side, or under "" of both; TraceFileError if it says it twice."""
    by_side = dict[str, V]()
    names = dict[str, str]()
    for name, value in values.items():
        side = sides[name]
        same = [names[known] for known in names if known == side or not (known and side)]
        if same:
            raise TraceFileError(
                f"The file has “{same[0]}” and “{name}”, which say the same: keep one."
            )
        by_side[side] = value
        names[side] = name
    return by_side


def save_arrays(run: Translation, path: Path | io.BytesIO) -> None:
    """Writes the weights of a run as an NPZ file that ``load_arrays`` opens again."""
    arrays: dict[str, NDArray[np.generic]] = {"name": np.array(run.model)}
    for kind, site in run.config.sites.items():
        arrays[site.title or f"{kind}_attentions"] = np.array(
            [run.layer_weights(kind, layer) for layer in range(site.n_layers)]
        )
    for side in run.config.stacks:
        tokens = run.tokens(side)
        arrays[f"{side}_tokens"] = np.array(tokens, str)
        arrays[f"{side}_special"] = np.array([is_special(token) for token in tokens])
    np.savez_compressed(path, allow_pickle=False, **arrays)


def _read(content: bytes) -> _Content:
    """The content of a file of any format, which its first bytes tell."""
    if content.startswith(_ZIP):
        return _read_npz(content)
    if content.startswith(_NPY):
        return _Content(arrays={"weights": _array(io.BytesIO(content))})
    if content.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"["):
        return _read_json(content)
    return _read_safetensors(content)


def _too_large(n_bytes: int) -> None:
    if n_bytes > MOST_BYTES:
        raise TraceFileError(
            f"The file unpacks to more than {MOST_BYTES // 2**20} MiB, the limit for opening a "
            "file."
        )


def _read_npz(content: bytes) -> _Content:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if len(entries) > MOST_ARRAYS:
            raise TraceFileError(MANY)
        _too_large(sum(entry.file_size for entry in entries))
        arrays = dict[str, NDArray[np.generic]]()
        for entry in entries:
            with archive.open(entry) as file:
                unpacked = io.BytesIO(file.read(entry.file_size))
            arrays[entry.filename.removesuffix(".npy")] = _array(unpacked)
    return _sorted(arrays)


def _array(file: io.BytesIO) -> NDArray[np.generic]:
    """An array of numbers or texts; TraceFileError if it is cut off, or of another type."""
    shape, fortran, dtype = npy_header(file)
    if dtype.kind not in "fiubUS" or any(n < 0 for n in shape):
        raise TraceFileError(f"The file holds an array of the type {dtype}, not of numbers.")
    n_bytes = math.prod(map(int, shape)) * dtype.itemsize
    content = file.read(n_bytes)
    if len(content) < n_bytes:
        raise TraceFileError(CUT_OFF)
    numbers = np.frombuffer(content, dtype)
    if fortran:
        return numbers.reshape(shape[::-1]).T
    return numbers.reshape(shape)


def _sorted(arrays: Mapping[str, NDArray[np.generic]]) -> _Content:
    """Weights and tokens among the arrays of a file; other arrays are left out."""
    tokens = dict[str, Tokens]()
    special = dict[str, Iterable[int]]()
    numbers = dict[str, Numbers]()
    name = ""
    for key, array in arrays.items():
        if key in TOKENS:
            tokens[key] = array
        elif key in SPECIAL:
            special[key] = array
        elif key == "name" and array.dtype.kind == "U":
            name = str(array)
        elif key in OUTPUTS:
            numbers[key] = array
        elif array.ndim < 2 or key in ("mask", "scores"):
            continue
        elif array.dtype.kind == "f":
            numbers[key] = array
    if not numbers:
        _check_counts(arrays)
    return _Content(arrays=numbers, tokens=tokens, special=special, name=name)


def _check_counts(arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """TraceFileError, by name, for whole numbers that may be ids or counts, and are no weights."""
    for name, array in arrays.items():
        if array.ndim >= 2 and array.dtype.kind in "iub" and name not in ("mask", "scores"):
            raise TraceFileError(
                f"“{name}” holds whole numbers, which may be anything; if they are weights, call "
                "them weights."
            )


def _read_json(content: bytes) -> _Content:
    if len(content) > MOST_JSON:
        raise TraceFileError(f"The file holds more than {MOST_JSON // 2**20} MiB of JSON.")
    values = json.loads(content.decode("utf-8-sig"))
    if isinstance(values, list):
        return _Content(arrays={"weights": values})
    tokens = {name: values[name] for name in TOKENS if values.get(name) is not None}
    special = {name: values[name] for name in SPECIAL if values.get(name) is not None}
    known = [name for name in OUTPUTS if name in values]
    named = [
        name
        for name, value in values.items()
        if isinstance(value, list) and name not in ("mask", "scores", *TOKENS, *SPECIAL)
    ]
    return _Content(
        arrays={name: values[name] for name in known or named},
        tokens=tokens,
        special=special,
        name=str(values.get("name", "")),
    )


def _read_safetensors(content: bytes) -> _Content:
    """Eight bytes with the length of the header, the header as JSON, the numbers."""
    start = 8 + int.from_bytes(content[:8], "little")
    if not 8 < start <= len(content):
        raise TraceFileError(FOREIGN)
    _too_large(len(content))
    header = json.loads(content[8:start].decode("utf-8"))
    notes = header.pop("__metadata__", {})
    if len(header) > MOST_ARRAYS:
        raise TraceFileError(MANY)
    tensors = [_Tensor.of(name, entry) for name, entry in header.items()]
    if marks := [tensor.name for tensor in tensors if tensor.name in SPECIAL]:
        raise WeightsError(
            f"In a safetensors file, “{marks[0]}” stands in the metadata, as a list in JSON."
        )
    numbers = memoryview(content)[start:]
    if any(tensor.last > len(numbers) for tensor in tensors):
        raise TraceFileError(CUT_OFF)
    if sum(tensor.last - tensor.first for tensor in tensors) > len(numbers):
        raise TraceFileError(SHARED)
    known = [tensor for tensor in tensors if tensor.dtype in _SAFE_TYPES]
    _too_large(sum(tensor.unpacked for tensor in known))
    arrays = {tensor.name: tensor.array(numbers) for tensor in known}
    return _Content(
        arrays=_sorted(arrays).arrays,
        tokens={name: _in_json(notes[name]) for name in TOKENS if name in notes},
        special={name: _in_json(notes[name], "marks") for name in SPECIAL if name in notes},
        name=str(notes.get("name", "")),
    )


def _in_json(text: str, noun: str = "tokens") -> list[Any]:
    """The tokens, or their marks, in the metadata of a safetensors file, which holds texts only."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise WeightsError(f"The {noun} in the metadata of the file are no list in JSON.") from None


@dataclass(frozen=True, kw_only=True)
class _Tensor:
    """An entry in the header of a safetensors file."""

    name: str
    dtype: str
    shape: list[int]
    first: int  # byte of its numbers
    last: int  # byte after them

    @classmethod
    def of(cls, name: str, entry: Mapping[str, object]) -> _Tensor:
        """An entry as the header has it; TraceFileError if it is none."""
        shape = entry["shape"]
        offsets = entry["data_offsets"]
        if not isinstance(shape, list) or not isinstance(offsets, list):
            raise TraceFileError(FOREIGN)
        first, last = offsets
        if not 0 <= first <= last:
            raise TraceFileError(FOREIGN)
        return cls(name=name, dtype=str(entry["dtype"]), shape=shape, first=first, last=last)

    @property
    def unpacked(self) -> int:
        """Bytes that its numbers take in memory beside the file: bfloat16 becomes float32."""
        n_bytes = self.last - self.first
        if self.dtype == "BF16":
            return 2 * n_bytes
        return n_bytes

    def array(self, numbers: memoryview) -> NDArray[np.generic]:
        """Its numbers; TraceFileError if its bytes are not those of its shape."""
        dtype = np.dtype(_SAFE_TYPES[self.dtype])
        n_bytes = math.prod(self.shape) * dtype.itemsize
        if self.last - self.first != n_bytes:
            raise TraceFileError(CUT_OFF)
        array = np.frombuffer(numbers[self.first : self.last], dtype).reshape(self.shape)
        if self.dtype == "BF16":  # the first half of a float32
            return (array.astype(np.uint32) << 16).view(np.float32)
        return array
