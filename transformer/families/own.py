"""This package's own format: a config, a sentencepiece vocabulary, safetensors."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.config import ModelConfig
from transformer.families.family import Family
from transformer.storage.description import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    Description,
    describe,
    read_config,
)

if TYPE_CHECKING:
    from transformer.storage.directory import Checkpoint


class Own(Family):
    """A model that this package has written; whatever no other family owns is taken for one."""

    library = "attention-explorer"
    required = (CONFIG_FILE, TOKENIZER_FILE)

    def owns(self, directory: Path) -> bool:
        return True

    def publishes(self, names: Collection[str]) -> bool:
        return True

    def weights(self, names: Collection[str]) -> list[str]:
        return [WEIGHTS_FILE]

    def config(self, directory: Path) -> ModelConfig:
        return read_config(directory)

    def describe(self, directory: Path) -> Description | None:
        return describe(directory)

    def load(self, directory: Path) -> Checkpoint:
        from transformer.storage.directory import load_checkpoint

        return load_checkpoint(directory)
