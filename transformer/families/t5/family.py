"""The format of T5, FLAN-T5, mT5 and MADLAD, as transformers and the Hub have it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transformer.families.published import GENERATION_FILE, Published
from transformer.families.t5.config import t5_config
from transformer.families.t5.vocabulary import PIECES_FILE, SETTINGS_FILE
from transformer.storage.description import CONFIG_FILE

if TYPE_CHECKING:
    from transformer.storage.directory import Checkpoint


class T5(Published):
    """A directory whose config says that it holds a T5 or an mT5 model."""

    name = "T5 (FLAN-T5, mT5, MADLAD)"
    types = ("t5", "mt5")
    marks = (PIECES_FILE,)
    required = (CONFIG_FILE, PIECES_FILE)
    welcome = (*Published.welcome, SETTINGS_FILE, GENERATION_FILE)
    converted = staticmethod(t5_config)

    def load(self, directory: Path) -> Checkpoint:
        from transformer.families.t5.model import load_t5

        return load_t5(directory)
