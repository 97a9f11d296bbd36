"""The format of OPUS-MT and other Marian models, as transformers and the Hub have it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transformer.families.marian.config import marian_config
from transformer.families.marian.vocabulary import (
    SETTINGS_FILE,
    SOURCE_FILE,
    TARGET_FILE,
    TARGET_VOCABULARY_FILE,
    VOCABULARY_FILE,
)
from transformer.families.published import GENERATION_FILE, Published
from transformer.storage.description import CONFIG_FILE

if TYPE_CHECKING:
    from transformer.storage.directory import Checkpoint


class Marian(Published):
    """A directory whose config says that it holds a Marian model."""

    name = "Marian (OPUS-MT)"
    types = ("marian",)
    marks = (SOURCE_FILE,)
    required = (CONFIG_FILE, SOURCE_FILE, TARGET_FILE, VOCABULARY_FILE)
    welcome = (*Published.welcome, TARGET_VOCABULARY_FILE, SETTINGS_FILE, GENERATION_FILE)
    converted = staticmethod(marian_config)

    def load(self, directory: Path) -> Checkpoint:
        from transformer.families.marian.model import load_marian

        return load_marian(directory)
