"""A format of model directories, and what every format says of itself. No PyTorch until a model is opened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.config import ModelConfig, TransformerConfig
from transformer.storage.description import CARD_FILE, HEADS_FILE, Description

if TYPE_CHECKING:
    from transformer.storage.directory import Checkpoint


def every_part(
    config: TransformerConfig, encoder: Mapping[str, str], decoder: Mapping[str, str]
) -> Iterator[tuple[str, int, str, str]]:
    """Stack, layer (from 0), our name and theirs of every part of all layers, named alike in each."""
    for stack, depth, parts in (
        ("encoder", config.n_encoder_layers, encoder),
        ("decoder", config.n_decoder_layers, decoder),
    ):
        yield from ((stack, layer, *names) for layer in range(depth) for names in parts.items())


class Family(ABC):
    """A format of model directories."""

    name: str = ""  # how people call its models; empty if none of them is on the Hub in this format
    library: str  # who opens such a model, for the Hub
    required: tuple[str, ...]  # files that a published model has besides its weights
    welcome: tuple[str, ...] = (CARD_FILE, HEADS_FILE)  # files that it may have

    @abstractmethod
    def owns(self, directory: Path) -> bool:
        """True if a directory has this format."""

    def publishes(self, names: Collection[str]) -> bool:
        """True if a published model with these files has this format."""
        return set(self.required) <= set(names)

    @abstractmethod
    def weights(self, names: Collection[str]) -> list[str]:
        """The files of weights among those of a published model; empty if there are none."""

    @abstractmethod
    def config(self, directory: Path) -> ModelConfig:
        """The config of a model, read without its weights; CheckpointError if the package cannot open it."""

    def describe(self, directory: Path) -> Description | None:
        """Description from the files beside the weights; None if only the opened model knows."""
        return None

    @abstractmethod
    def load(self, directory: Path) -> Checkpoint:
        """Opens a model; CheckpointError if a file is missing, damaged, another model's, or unsupported."""
