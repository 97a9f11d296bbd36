"""Which files of a model's directory are needed, and whether they are what they should be."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from transformer.families.marian.model import is_marian, marian_config
from transformer.families.marian.rules import GENERATION_FILE
from transformer.families.marian.vocabulary import (
    SETTINGS_FILE,
    SOURCE_FILE,
    TARGET_FILE,
    TARGET_VOCABULARY_FILE,
    VOCABULARY_FILE,
)
from transformer.hub.settings import HubError
from transformer.model.config import TransformerConfig
from transformer.storage.directory import (
    CARD_FILE,
    CONFIG_FILE,
    HEADS_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    read_config,
)
from transformer.storage.files import MAX_JSON_BYTES, read_json
from transformer.storage.tensors import MAX_SHARDS, PYTORCH, SAFETENSORS

OWN = (CONFIG_FILE, TOKENIZER_FILE)
MARIAN = (CONFIG_FILE, SOURCE_FILE, TARGET_FILE, VOCABULARY_FILE)
"""Files that must be there, besides the weights."""
WELCOME = (CARD_FILE, HEADS_FILE)
"""Files that are taken where they are there."""
WELCOME_TO_MARIAN = (*WELCOME, TARGET_VOCABULARY_FILE, SETTINGS_FILE, GENERATION_FILE)
MAX_SMALL_BYTES = MAX_JSON_BYTES
"""Most bytes of a file that holds no weights."""
_SHARD = {
    SAFETENSORS: re.compile(r"model-\d{5}-of-\d{5}\.safetensors"),
    PYTORCH: re.compile(r"pytorch_model-\d{5}-of-\d{5}\.bin"),
}
HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""Git's name of a content, or its SHA-256."""


@dataclass(frozen=True)
class RemoteFile:
    """A file as the Hub describes it.

    Attributes:
        name: Its name; never with a folder.
        size: In bytes.
        hash: SHA-256 of its content (64 digits), or git's name of it (40 digits).
    """

    name: str
    size: int
    hash: str

    @property
    def is_weights(self) -> bool:
        """Whether it holds weights."""
        return self.name.endswith((".safetensors", ".bin"))


def needed(names: Collection[str], model: str) -> list[str]:
    """The files that are needed to open a model: small ones first, weights last.

    Args:
        names: Those that there are.
        model: The model's name, for the message.

    Raises:
        HubError: This is no model that the package can open.
    """
    is_marian_s = {CONFIG_FILE, SOURCE_FILE} <= set(names)
    required = MARIAN if is_marian_s else OWN
    welcome = WELCOME_TO_MARIAN if is_marian_s else WELCOME
    weights = _weights(names) if is_marian_s else [WEIGHTS_FILE]
    missing = sorted({*required, *weights} - set(names))
    if missing or not weights:
        lacking = " and no ".join(missing[:3]) or f"{SAFETENSORS} or {PYTORCH}"
        raise HubError(
            f"{model} has no {lacking}; only Marian models (OPUS-MT) and those of this package are opened."
        )
    return [*required, *(name for name in welcome if name in names), *weights]


def _weights(names: Collection[str]) -> list[str]:
    """Safetensors before PyTorch, one file before shards, as the loader reads them."""
    for name, shard in _SHARD.items():
        index = f"{name}.index.json"
        if name in names:
            return [name]
        if index in names:
            shards = sorted(filter(shard.fullmatch, names))
            return [index, *shards] if 0 < len(shards) <= MAX_SHARDS else []
    return []


def check_sizes(model: str, files: Iterable[RemoteFile], most_bytes: int, variable: str) -> None:
    """Refuses a model that is too large, before it is downloaded.

    Raises:
        HubError: A small file, or all together, are.
    """
    total = 0
    for file in files:
        total += file.size
        if file.size > MAX_SMALL_BYTES and not file.is_weights:
            raise HubError(f"{model}: its {file.name} has {size(file.size)}; no such file of a model has.")
    if total > most_bytes:
        raise HubError(
            f"{model} has {size(total)}; at most {size(most_bytes)} are downloaded ({variable} changes that)."
        )


def check_config(directory: Path) -> TransformerConfig:
    """The config of a downloaded model, before its weights are there.

    Raises:
        CheckpointError: It describes no model that the package can open.
    """
    path = directory / CONFIG_FILE
    return marian_config(read_json(path), path) if is_marian(directory) else read_config(directory)


def matches(path: Path, expected: str) -> bool:
    """Whether a file's content has a hash: SHA-256, or git's."""
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
    """A number of bytes for people, in powers of ten as the Hub shows them."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= factor:
            return f"{nbytes / factor:.1f} {unit}"
    return f"{nbytes:.0f} bytes"
