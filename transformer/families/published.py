"""The formats of transformers and the Hub: a config that says its type, and weights, whole or in shards."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from transformer.config import ModelConfig, TransformerConfig
from transformer.families.family import Family
from transformer.storage.description import CONFIG_FILE, check_parameters
from transformer.storage.files import MAX_SHARDS, PYTORCH, SAFETENSORS, CheckpointError, read_json

GENERATION_FILE = "generation_config.json"
ACTIVATIONS = {"swish": "silu", "silu": "silu", "gelu": "gelu", "relu": "relu"}
"""Our names of activations by theirs."""

PAIRS: dict[str, tuple[str, object]] = {
    "decoder_attention_heads": ("encoder_attention_heads", 16),
}
"""Decoder entries that must equal the encoder's: our stacks share one number of heads."""

_SHARD = {
    SAFETENSORS: re.compile(r"model-\d{5}-of-\d{5}\.safetensors"),
    PYTORCH: re.compile(r"pytorch_model-\d{5}-of-\d{5}\.bin"),
}
Json = dict[str, Any]
Converted = Callable[[Json, Path], ModelConfig]
"""Entries of a ``config.json``, and its path for messages, as our config."""


class Published(Family):
    """A directory whose config says that it holds a model of one of some types."""

    library = "transformers"
    types: tuple[str, ...]  # what ``model_type`` may say
    marks: tuple[str, ...]  # files by which a published model is known
    converted: Converted

    def owns(self, directory: Path) -> bool:
        file = directory / CONFIG_FILE
        return file.is_file() and read_json(file).get("model_type") in self.types

    def publishes(self, names: Collection[str]) -> bool:
        return {CONFIG_FILE, *self.marks} <= set(names)

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
        return type(self).converted(read_json(path), path)


def require(values: Json, required: dict[str, object], path: Path) -> None:
    """CheckpointError if an entry is there and says something else than what this package can compute."""
    for name, needed in required.items():
        if values.get(name, needed) != needed:
            raise CheckpointError(f"{path} says {name} = {values[name]!r:.80}; only {needed!r} is supported.")


def require_pairs(values: Json, pairs: dict[str, tuple[str, object]], path: Path) -> None:
    """CheckpointError if an entry differs from its twin: our stacks share one number of heads."""
    for name, (twin, default) in pairs.items():
        if values.get(name, default) != values.get(twin, default):
            raise CheckpointError(
                f"{path} has {name} = {values.get(name, default)!r:.80}, but {twin} = "
                f"{values.get(twin, default)!r:.80}; only models with equal values are supported."
            )


def one_of(values: Json, name: str, default: str, known: dict[str, Any], what: str, path: Path) -> Any:
    """What a table says of an entry; CheckpointError if the table does not know it."""
    found = values.get(name, default)
    if not isinstance(found, str) or found not in known:
        raise CheckpointError(f"{path} has the {what} {found!r:.80}; supported are {', '.join(known)}.")
    return known[found]


def taken(values: Json, fields: dict[str, tuple[str, Any]]) -> Json:
    """Our fields, each from its entry, or the reference's default; a list of one id is that id."""
    found = {field: values.get(name, default) for field, (name, default) in fields.items()}
    ids = {name: value[0] for name, value in found.items() if isinstance(value, list) and len(value) == 1}
    return found | {name: value for name, value in ids.items() if name.endswith("_id")}


def built(ours: Json, path: Path) -> TransformerConfig:
    """The config of fields; CheckpointError if one is out of range, or the model would be too large."""
    if ours.get("decoder_d_ff") == ours["d_ff"]:
        ours = ours | {"decoder_d_ff": None}
    try:
        config = TransformerConfig.from_dict(ours)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} describes no usable model: {error}") from error
    check_parameters(path, config)
    return config


FIELDS: dict[str, tuple[str, Any]] = {
    "d_model": ("d_model", 1024),
    "d_ff": ("encoder_ffn_dim", 4096),
    "decoder_d_ff": ("decoder_ffn_dim", 4096),
    "n_heads": ("encoder_attention_heads", 16),
    "n_encoder_layers": ("encoder_layers", 12),
    "n_decoder_layers": ("decoder_layers", 12),
    "dropout": ("dropout", 0.1),
    "max_positions": ("max_position_embeddings", 1024),
}
"""Maps our field to that of Marian's and fairseq's relatives and the default of all of their references."""
FAIRSEQ = FIELDS | {
    "pad_id": ("pad_token_id", 1),
    "bos_id": ("decoder_start_token_id", 2),
    "eos_id": ("eos_token_id", 2),
}


def config_of(
    values: Json,
    path: Path,
    fields: dict[str, tuple[str, Any]],  # maps our field to theirs and its default
    required: dict[str, object],  # entries whose other values would mean another architecture
    activation: str,  # the default
    choices: Json,  # what all of the family have in common
) -> TransformerConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is out of range or unsupported."""
    require(values, required, path)
    require_pairs(values, PAIRS, path)
    named = one_of(values, "activation_function", activation, ACTIVATIONS, "activation", path)
    return built(taken(values, fields) | choices | {"activation": named}, path)
