"""Arrays with a head of JSON as one small file beside a model (NPZ, no pickle); read without PyTorch."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.storage.files import CheckpointError, write_atomically

Arrays = dict[str, NDArray[Any]]
_HEAD = "head"


def write_packed(path: Path, head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes a file, atomically."""
    told = np.frombuffer(json.dumps(head, ensure_ascii=False).encode(), np.uint8)
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **{_HEAD: told, **arrays})
    write_atomically(path, packed.getvalue())


def read_packed(path: Path, only: tuple[str, ...] | None = None) -> tuple[dict[str, Any], Arrays]:
    """Head and arrays (all, or those named) of a file; CheckpointError if it is missing or damaged."""
    try:
        with path.open("rb") as raw, np.load(raw) as file:
            names = [name for name in file.files if name != _HEAD and (only is None or name in only)]
            return dict(json.loads(file[_HEAD].tobytes())), {name: file[name] for name in names}
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise CheckpointError(f"{path} is damaged; remove it, or write it again.") from error
