"""The format of M2M-100 and NLLB-200, as transformers and the Hub have it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transformer.families.m2m.config import m2m_config
from transformer.families.m2m.vocabulary import IDS_FILE, SETTINGS_FILE
from transformer.families.pairs import PIECES_FILE
from transformer.families.published import GENERATION_FILE, Published
from transformer.storage.description import CONFIG_FILE

if TYPE_CHECKING:
    from transformer.storage.directory import Checkpoint


class M2M(Published):
    """A directory whose config says that it holds an M2M-100 model; NLLB-200 calls itself so, too."""

    name = "M2M-100 and NLLB-200"
    types = ("m2m_100",)
    marks = (PIECES_FILE,)
    required = (CONFIG_FILE, PIECES_FILE)
    welcome = (*Published.welcome, IDS_FILE, SETTINGS_FILE, GENERATION_FILE)
    converted = staticmethod(m2m_config)

    def load(self, directory: Path) -> Checkpoint:
        from transformer.families.m2m.model import load_m2m

        return load_m2m(directory)
