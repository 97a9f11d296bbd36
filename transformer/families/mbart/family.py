"""The format of mBART-50, as transformers and the Hub have it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transformer.families.mbart.config import mbart_config
from transformer.families.pairs import PIECES_FILE
from transformer.families.published import GENERATION_FILE, Published
from transformer.storage.description import CONFIG_FILE

if TYPE_CHECKING:
    from transformer.storage.directory import Checkpoint


class MBart(Published):
    """A directory whose config says that it holds an mBART model."""

    name = "mBART-50"
    types = ("mbart",)
    marks = (PIECES_FILE,)
    required = (CONFIG_FILE, PIECES_FILE)
    welcome = (*Published.welcome, GENERATION_FILE)
    converted = staticmethod(mbart_config)

    def load(self, directory: Path) -> Checkpoint:
        from transformer.families.mbart.model import load_mbart

        return load_mbart(directory)
