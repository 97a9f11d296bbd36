"""Weights in files: safetensors or PyTorch, whole or in shards, as transformers and the Hub store
them.

Names, shapes and types are read before any numbers. The numbers are then read a few tensors at a
time, so that peak memory is little more than the model itself.
"""

import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from transformer.storage.files import (
    MAX_SHARDS,
    PYTORCH,
    SAFETENSORS,
    CheckpointError,
    check_pointer,
    read_json,
)

GROUP_BYTES = 24 * 2**20
"""Largest number of stored bytes mapped at once."""
MAX_PICKLE_BYTES = 16 * 2**20
"""Largest number of bytes for names and shapes in a PyTorch file."""
TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""Types of weights, as safetensors names them."""
EIGHT_BITS = {"I8": torch.int8}
"""The type of those that have multipliers, see `storage.eight_bits`."""
_SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.(safetensors|bin)")


class TensorFile(Protocol):
    """An open safetensors file, as its library has it, without types."""

    def keys(self) -> list[str]: ...
    def metadata(self) -> dict[str, str] | None: ...
    def get_tensor(self, name: str) -> Tensor: ...
    def get_slice(self, name: str) -> Any: ...


@dataclass(frozen=True)
class StoredTensor:
    """The location and shape of a tensor whose numbers have not been read yet."""

    path: Path  # file that holds the tensor
    shape: tuple[int, ...]  # shape of the tensor
    nbytes: int  # bytes that its numbers take in the file
    storage: int | None  # equal for two names of the same tensor in one file; None if unknown
    loaded: Tensor | None = (
        None  # the tensor itself, if its file cannot be mapped and had to be read whole
    )
    called: str = ""  # its name in the file, if it has another one here
    kind: str = ""  # the type of its numbers, if weights cannot be of this type


def weight_files(directory: Path) -> tuple[Path, ...]:
    """The files that hold a model's weights: safetensors before PyTorch, one file before shards.

    CheckpointError if there are none, or the index of the shards names a file outside the
    directory.
    """
    for name in (SAFETENSORS, PYTORCH):
        if (directory / name).is_file():
            return (directory / name,)
        if (directory / f"{name}.index.json").is_file():
            return _shards(directory / f"{name}.index.json")
    raise CheckpointError(
        f"{directory} has neither {SAFETENSORS} nor {PYTORCH}, so it is not a complete model "
        "directory."
    )


def _shards(index: Path) -> tuple[Path, ...]:
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise CheckpointError(f"{index} does not name any weight files.")
    names = {str(name) for name in places.values()}
    wrong = sorted(name for name in names if not _SHARD.fullmatch(name))
    if wrong:
        raise CheckpointError(
            f"{index} names {wrong[0]!r:.80}, which is not a weight file beside it."
        )
    if len(names) > MAX_SHARDS:
        raise CheckpointError(
            f"{index} names {len(names):,} files; this package opens at most {MAX_SHARDS}."
        )
    missing = sorted(name for name in names if not (index.parent / name).is_file())
    if missing:
        raise CheckpointError(
            f"{index.parent} lacks {missing[0]}, one of the files that hold the weights."
        )
    return tuple(index.parent / name for name in sorted(names))


def stored_tensors(
    paths: Iterable[Path],
    types: Mapping[
        str, torch.dtype
    ] = TYPES,  # the types of numbers that a safetensors file may hold
    # whether tensors of other types are listed, too, to be passed over or named
    all_types: bool = False,
) -> dict[str, StoredTensor]:
    """Every tensor of the files, by name, without its numbers (PyTorch files before 1.6 are read
    whole).

    CheckpointError if a file is damaged or holds more than numbers, or a name occurs twice.
    """
    stored: dict[str, StoredTensor] = {}
    for path in paths:
        check_pointer(path)
        if path.suffix == ".safetensors":
            with opened(path) as file:
                names = list(file.keys())
                parts = {name: _header(path, name, file.get_slice(name), types) for name in names}
        else:
            parts = {name: _view(path, tensor) for name, tensor in _unpickled(path).items()}
        if not all_types:
            check_types(parts)
        for name, tensor in parts.items():
            if name in stored:
                raise CheckpointError(
                    f"{path} holds {name!r:.80}, but {stored[name].path.name} holds it too."
                )
            stored[name] = tensor
    return stored


def _header(path: Path, name: str, tensor: Any, types: Mapping[str, torch.dtype]) -> StoredTensor:
    shape = tuple(tensor.get_shape())
    kind = tensor.get_dtype()
    if kind not in types:
        return StoredTensor(path, shape, 0, None, kind=kind)
    return StoredTensor(path, shape, torch.Size(shape).numel() * types[kind].itemsize, None)


def check_types(stored: Mapping[str, StoredTensor]) -> None:
    """CheckpointError if one of some tensors is not of a type of weights."""
    for name, tensor in stored.items():
        if tensor.kind:
            raise CheckpointError(
                f"{tensor.path} holds {name!s:.80} as {tensor.kind}; weights must be "
                "floating-point."
            )


def _view(path: Path, tensor: Tensor) -> StoredTensor:
    if tensor.device.type != "cpu" or tensor.is_nested or tensor.layout != torch.strided:
        raise CheckpointError(f"{path} holds a tensor that has no numbers or no single shape.")
    if tensor.dtype not in TYPES.values():
        return StoredTensor(
            path, tuple(tensor.shape), 0, None, kind=str(tensor.dtype).removeprefix("torch.")
        )
    if tensor.nbytes > tensor.untyped_storage().nbytes():
        raise CheckpointError(
            f"{path} holds a tensor that repeats its stored numbers; weights never do."
        )
    held = None if zipfile.is_zipfile(path) else tensor
    return StoredTensor(path, tuple(tensor.shape), tensor.nbytes, tensor.data_ptr(), held)


def check_names(directory: Path, wanted: set[str], names: set[str]) -> None:
    """CheckpointError if a weight is missing, or there is one that no model of this config has."""
    if missing := sorted(wanted - names):
        raise CheckpointError(
            f"The weights in {directory} lack {len(missing)} that config.json asks for; "
            f"the first is {missing[0]}."
        )
    if extra := sorted(names - wanted):
        raise CheckpointError(
            f"The weights in {directory} include {len(extra)} that config.json does not describe, "
            f"such as {extra[0]!r:.80}."
        )


def check_shape(path: Path, name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """CheckpointError if a weight of a file has another shape than its model."""
    if shape != wanted:
        raise CheckpointError(
            f"{path}: the weight {name} has the shape {shape!s:.80}, but config.json asks for "
            f"{wanted}; the files belong to different models."
        )


def read_tensors(stored: Mapping[str, StoredTensor]) -> Iterator[tuple[str, Tensor]]:
    """Yields the named tensors, large ones first; copy each before asking for the next (files are
    mapped).

    CheckpointError if a file has changed or is damaged.
    """
    for path in dict.fromkeys(tensor.path for tensor in stored.values()):
        names = [name for name, tensor in stored.items() if tensor.path == path]
        for group in _groups(sorted(names, key=lambda name: -stored[name].nbytes), stored):
            with _opened(path, stored) as tensor:
                for name in group:
                    entry = stored[name]
                    if entry.loaded is None:
                        yield name, tensor(entry.called or name)
                    else:
                        yield name, entry.loaded


def _groups(names: list[str], stored: Mapping[str, StoredTensor]) -> Iterator[list[str]]:
    group: list[str] = []
    held = 0
    for name in names:
        if group and held + stored[name].nbytes > GROUP_BYTES:
            yield group
            group = []
            held = 0
        group.append(name)
        held += stored[name].nbytes
    if group:
        yield group


@contextmanager
def _opened(path: Path, stored: Mapping[str, StoredTensor]) -> Iterator[Callable[[str], Tensor]]:
    """What maps a tensor of a file by its name there."""
    if path.suffix == ".safetensors":
        with opened(path) as file:
            yield file.get_tensor
    else:
        entries = [entry for entry in stored.values() if entry.path == path]
        is_loaded = any(entry.loaded is not None for entry in entries)
        yield ({} if is_loaded else _unpickled(path)).__getitem__


@contextmanager
def opened(path: Path) -> Iterator[TensorFile]:
    """A safetensors file; CheckpointError if it is damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is damaged, cut off, or not a safetensors file ({error})."
        ) from error


def tensors_of(file: TensorFile) -> dict[str, Tensor]:
    """All tensors of an open safetensors file."""
    names = file.keys()
    return {name: file.get_tensor(name) for name in names}


def _unpickled(path: Path) -> dict[str, Tensor]:
    """The tensors of a PyTorch file: mapped from a zip file, read whole from an older file (before
    1.6)."""
    is_zip = zipfile.is_zipfile(path)
    if is_zip:
        _check_zip(path)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
    except Exception as error:  # a hostile file decides what is raised
        raise CheckpointError(
            f"{path} is damaged, not a PyTorch file, or holds more than numbers, which is refused."
        ) from error
    if not isinstance(state, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in state.items()
    ):
        raise CheckpointError(f"{path} holds something other than named tensors.")
    return state


def _check_zip(path: Path) -> None:
    """Refuses a zip file that unpacks to more than its own size, before unpacking any of it."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise CheckpointError(f"{path} is damaged, cut off, or not a PyTorch file.") from error
    if any(
        entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size
        for entry in entries
    ):
        raise CheckpointError(
            f"{path} is a compressed zip file; PyTorch does not write such files."
        )
    if sum(entry.file_size for entry in entries) > os.path.getsize(path):
        raise CheckpointError(
            f"{path} unpacks to more than its own size; PyTorch does not write such files."
        )
    if any(
        entry.file_size > MAX_PICKLE_BYTES for entry in entries if entry.filename.endswith(".pkl")
    ):
        raise CheckpointError(f"{path} names more tensors than any translation model has.")


def all_finite(tensor: Tensor) -> bool:
    """Whether no number of a float32 tensor is NaN or infinite.

    By NumPy, in this thread alone: while other threads compute, PyTorch's wait for one another,
    which takes ten times as long (*measured*).
    """
    numbers = tensor.numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        # the sum of finite numbers may be infinite, but that of others is never finite
        if math.isfinite(numbers.sum()):
            return True
    return math.isfinite(float(numbers.min()) + float(numbers.max()))


def serialize_tensors(tensors: dict[str, Tensor], notes: dict[str, str]) -> bytes:
    """Serialises tensors and notes in the safetensors format; equal content gives equal bytes.

    (The safetensors library writes the notes in random order.)
    """
    content = save(tensors, notes)
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header["__metadata__"] = notes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[start:]
