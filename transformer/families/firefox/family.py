"""The format of Firefox's translation models; on the Hub they stand in this package's own format."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.families.family import Family
from transformer.families.firefox.config import read_firefox_config
from transformer.families.firefox.folder import has_firefox
from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    from transformer.storage.directory import Checkpoint


class Firefox(Family):
    """A folder, zip or tar of a model's files, as Firefox, Bergamot and translateLocally have them."""

    library = "bergamot"
    required = ()

    def owns(self, directory: Path) -> bool:
        return has_firefox(directory)

    def publishes(self, names: Collection[str]) -> bool:
        return False

    def weights(self, names: Collection[str]) -> list[str]:
        return []

    def config(self, directory: Path) -> ModelConfig:
        return read_firefox_config(directory)

    def load(self, directory: Path) -> Checkpoint:
        from transformer.families.firefox.model import load_firefox

        return load_firefox(directory)
