"""The format of OPUS-MT and other Marian models, as transformers and the Hub have it."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.families.family import Family
from transformer.families.marian.config import marian_config
from transformer.families.marian.rules import GENERATION_FILE
from transformer.families.marian.vocabulary import (
    SETTINGS_FILE,
    SOURCE_FILE,
    TARGET_FILE,
    TARGET_VOCABULARY_FILE,
    VOCABULARY_FILE,
)
from transformer.model.config import ModelConfig
from transformer.storage.description import CONFIG_FILE
from transformer.storage.files import MAX_SHARDS, PYTORCH, SAFETENSORS, read_json

if TYPE_CHECKING:
    from transformer.storage.directory import Checkpoint

_SHARD = {
    SAFETENSORS: re.compile(r"model-\d{5}-of-\d{5}\.safetensors"),
    PYTORCH: re.compile(r"pytorch_model-\d{5}-of-\d{5}\.bin"),
}


class Marian(Family):
    """A directory whose config says that it holds a Marian model."""

    library = "transformers"
    required = (CONFIG_FILE, SOURCE_FILE, TARGET_FILE, VOCABULARY_FILE)
    welcome = (*Family.welcome, TARGET_VOCABULARY_FILE, SETTINGS_FILE, GENERATION_FILE)

    def owns(self, directory: Path) -> bool:
        file = directory / CONFIG_FILE
        return file.is_file() and read_json(file).get("model_type") == "marian"

    def publishes(self, names: Collection[str]) -> bool:
        return {CONFIG_FILE, SOURCE_FILE} <= set(names)

    def weights(self, names: Collection[str]) -> list[str]:
        """The files that the loader prefers: safetensors before PyTorch, one file before shards."""
        for name, shard in _SHARD.items():
            index = f"{name}.index.json"
            if name in names:
                return [name]
            if index in names:
                shards = sorted(filter(shard.fullmatch, names))
                return [index, *shards] if 0 < len(shards) <= MAX_SHARDS else []
        return []

    def config(self, directory: Path) -> ModelConfig:
        path = directory / CONFIG_FILE
        return marian_config(read_json(path), path)

    def load(self, directory: Path) -> Checkpoint:
        from transformer.families.marian.model import load_marian

        return load_marian(directory)
