"""Chooses the files needed to open a model, and checks their sizes, hashes and config."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from transformer.config import ModelConfig
from transformer.families.pieces import WHOLE_FILE
from transformer.families.registry import config_in, known_names, needed_files
from transformer.hub.settings import HubError
from transformer.storage.description import parameter_count
from transformer.storage.files import MAX_JSON_BYTES, MAX_TOKENIZER_BYTES, PYTORCH, SAFETENSORS

MAX_SMALL_BYTES = MAX_JSON_BYTES
"""Largest number of bytes in a file that holds no weights."""
HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""A git object id, or a SHA-256."""


@dataclass(frozen=True)
class RemoteFile:
    """A file as the Hub describes it."""

    name: str  # file name without a folder
    size: int  # size in bytes
    hash: str  # SHA-256 of the content (64 digits), or its git object id (40 digits)

    @property
    def is_weights(self) -> bool:
        """True if the file holds weights."""
        return self.name.endswith((".safetensors", ".bin"))


@dataclass(frozen=True)
class Offer:
    """A model on the Hub that can be downloaded."""

    name: str  # name that was asked for
    present_name: str  # present name of the model; differs from ``name`` if the model was renamed
    revision: str  # branch, tag or commit that was asked for
    commit: str  # commit that the revision points to
    files: tuple[RemoteFile, ...]  # files to download
    config: ModelConfig  # config of the model

    @property
    def nbytes(self) -> int:
        """Total size of the files in bytes."""
        return sum(file.size for file in self.files)

    @property
    def loaded_nbytes(self) -> int:
        """Bytes of the model's weights in float32."""
        return 4 * parameter_count(self.config)


def needed(names: Collection[str], model: str) -> list[str]:
    """The files needed to open a model, weights last; HubError if the package cannot open it."""
    others, weights = needed_files(names)
    missing = sorted({*others, *weights} - set(names))
    if missing or not weights:
        lacking = " and no ".join(missing[:3]) or f"{SAFETENSORS} or {PYTORCH}"
        raise HubError(
            f"{model} has no {lacking}; this package opens only {known_names()} models and its own."
        )
    return [*others, *weights]


def check_sizes(model: str, files: Iterable[RemoteFile], most_bytes: int, variable: str) -> None:
    """HubError, before the download, if a file without weights, or all files together, are too large."""
    total = 0
    for file in files:
        total += file.size
        most = MAX_TOKENIZER_BYTES if file.name == WHOLE_FILE else MAX_SMALL_BYTES
        if file.size > most and not file.is_weights:
            raise HubError(f"{model}: {file.name} has {size(file.size)}, which is too large for this file.")
    if total > most_bytes:
        raise HubError(
            f"{model} has {size(total)}, but downloads are limited to {size(most_bytes)}; "
            f"{variable} changes the limit."
        )


def check_config(directory: Path) -> ModelConfig:
    """The config of a model that is not downloaded yet; CheckpointError if the package cannot open it."""
    return config_in(directory)


def matches(path: Path, expected: str) -> bool:
    """True if the content of a file matches a SHA-256 or a git object id."""
    if not HASH.fullmatch(expected):
        return False
    digest = hashlib.sha256() if len(expected) == 64 else hashlib.sha1(usedforsecurity=False)
    if len(expected) == 40:
        digest.update(f"blob {path.stat().st_size}\0".encode())
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest() == expected


def size(nbytes: float) -> str:
    """A number of bytes as readable text, in powers of ten as on the Hub."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= factor:
            return f"{nbytes / factor:.1f} {unit}"
    return f"{nbytes:.0f} bytes"
