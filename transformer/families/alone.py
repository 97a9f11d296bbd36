"""A family of models with one stack, decoders or encoders alone, as transformers and the Hub have
them: its values, and where its files hold each weight.

No PyTorch at import: a model is described without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from transformer.config import EncoderConfig, LanguageModelConfig, Side
from transformer.families.family import Json
from transformer.storage.files import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor

Config = TypeVar("Config", LanguageModelConfig, EncoderConfig)
Shape = tuple[int, ...]
MOST_POSITIONS = 32_768
"""Positions for which a model gets tables; the longest text that is read has far fewer tokens."""
EMBEDDING = "embedding"
"""Our name of the table of pieces."""
FIELDS = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "d_ff": "intermediate_size",
    "n_heads": "num_attention_heads",
    "n_layers": "num_hidden_layers",
    "max_positions": "max_position_embeddings",
}
"""Maps our field to the entry that most families have for it."""


@dataclass(frozen=True)
class Layout:
    """How a tensor of ours lies in a file."""

    shape: Callable[[Shape], Shape]  # that of the file's tensor, from ours
    taken: Callable[[Tensor], Tensor]  # ours, from the file's


AS_OURS = Layout(lambda ours: ours, lambda theirs: theirs)


@dataclass(frozen=True)
class Source:
    """Where a file holds a tensor of ours."""

    name: str  # theirs
    layout: Layout = AS_OURS


@dataclass(frozen=True, kw_only=True)
class StackFamily(Generic[Config]):
    """What opening a model of one stack asks of its family."""

    name: str  # how people call its models
    types: tuple[str, ...]  # what ``model_type`` of config.json may say
    # entries of config.json, and its path for messages, as our config
    config: Callable[[Json, Path], Config]
    # our name of every weight → where a file holds it, without the prefix
    sources: Callable[[Config], dict[str, Source]]
    prefix: str  # of the names of weights, which some files lack
    unread: re.Pattern[str]  # tensors that no model reads, such as masks, by name without prefix
    # what ``vocab.json`` and ``merges.txt`` mean without a tokenizer.json; None: nothing
    byte_level: bool = False


def taken(values: Json, names: Mapping[str, str], path: Path) -> Json:
    """Our fields from their entries; CheckpointError if one is missing."""
    for entry in names.values():
        if values.get(entry) is None:
            raise CheckpointError(f"{path} lacks the entry {entry}.")
    return {ours: values[theirs] for ours, theirs in names.items()}


def number(values: Json, entry: str, default: float, path: Path) -> float:
    """A number of an entry; CheckpointError if it is none."""
    value = values.get(entry, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CheckpointError(f"{path} says {entry} = {value!r:.80}, which is no number.")
    return float(value)


def after_rows(count: int) -> Layout:
    """A table whose first rows no token has."""
    return Layout(lambda ours: (count + ours[0], *ours[1:]), lambda theirs: theirs[count:])


def of_layers(
    config: LanguageModelConfig | EncoderConfig, layers: str, side: Side = "decoder"
) -> Iterator[tuple[str, str]]:
    """Our path and theirs of every layer; ``layers`` is what theirs begin with: ``h.{}``."""
    for layer in range(config.n_layers):
        yield f"{side}.layers.{layer}", layers.format(layer)


def both(ours: str, theirs: str, biases: bool, layout: Layout = AS_OURS) -> dict[str, Source]:
    """Weight and bias of a part."""
    sources = {f"{ours}.weight": Source(f"{theirs}.weight", layout)}
    if biases:
        sources[f"{ours}.bias"] = Source(f"{theirs}.bias", layout)
    return sources
