"""The format of BART, as transformers and the Hub have it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transformer.families.bart.config import bart_config
from transformer.families.bart.vocabulary import IDS_FILE, MERGES_FILE, WHOLE_FILE
from transformer.families.published import GENERATION_FILE, Published
from transformer.storage.description import CONFIG_FILE

if TYPE_CHECKING:
    from transformer.storage.directory import Checkpoint


class Bart(Published):
    """A directory whose config says that it holds a BART model."""

    name = "BART"
    types = ("bart",)
    marks = (MERGES_FILE,)
    required = (CONFIG_FILE, IDS_FILE, MERGES_FILE)
    welcome = (*Published.welcome, WHOLE_FILE, GENERATION_FILE)
    converted = staticmethod(bart_config)

    def load(self, directory: Path) -> Checkpoint:
        from transformer.families.bart.model import load_bart

        return load_bart(directory)
