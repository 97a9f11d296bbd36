"""The config of a Marian model, converted to ours: tables of names and defaults. No PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformer.model.config import TransformerConfig
from transformer.storage.description import check_parameters
from transformer.storage.files import CheckpointError

Json = dict[str, Any]

FIELDS = {
    "vocab_size": ("vocab_size", 58_101),
    "d_model": ("d_model", 1024),
    "d_ff": ("encoder_ffn_dim", 4096),
    "n_heads": ("encoder_attention_heads", 16),
    "n_encoder_layers": ("encoder_layers", 12),
    "n_decoder_layers": ("decoder_layers", 12),
    "dropout": ("dropout", 0.1),
    "shared_embeddings": ("share_encoder_decoder_embeddings", True),
    "tied_embeddings": ("tie_word_embeddings", True),
    "scaled_embeddings": ("scale_embedding", False),
    "max_positions": ("max_position_embeddings", 1024),
    "pad_id": ("pad_token_id", 58_100),
    "bos_id": ("decoder_start_token_id", 58_100),
    "eos_id": ("eos_token_id", 0),
}
"""Maps our field to their name and the reference's default, used if config.json lacks the entry."""

ACTIVATIONS = {"swish": "silu", "silu": "silu", "gelu": "gelu", "relu": "relu"}

PAIRS = {
    "decoder_ffn_dim": ("encoder_ffn_dim", 4096),
    "decoder_attention_heads": ("encoder_attention_heads", 16),
}
"""Decoder entries that must equal the encoder's: our stacks share one width and one number of heads."""

REQUIRED = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
    "is_encoder_decoder": True,
}
"""Entries of older configs; any other value would mean another architecture."""


def marian_config(values: Json, path: Path) -> TransformerConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is out of range or unsupported."""
    for name, required in REQUIRED.items():
        if values.get(name, required) != required:
            raise CheckpointError(
                f"{path} says {name} = {values[name]!r:.80}; only {required!r} is supported."
            )
    for name, (twin, default) in PAIRS.items():
        if values.get(name, default) != values.get(twin, default):
            raise CheckpointError(
                f"{path} has {name} = {values.get(name, default)!r:.80}, but {twin} = "
                f"{values.get(twin, default)!r:.80}; only models with equal values are supported."
            )
    activation = values.get("activation_function", "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(
            f"{path} has the activation {activation!r:.80}; supported are {', '.join(ACTIVATIONS)}."
        )
    ours = {field: values.get(name, default) for field, (name, default) in FIELDS.items()}
    target_size = values.get("decoder_vocab_size") or None
    if not ours["shared_embeddings"]:
        ours["target_vocab_size"] = target_size
    ours |= {"activation": ACTIVATIONS[activation], "norm": "post", "sine_layout": "halves", "unk_id": 0}
    try:
        config = TransformerConfig.from_dict(ours)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} describes no usable model: {error}") from error
    check_parameters(path, config)
    return config
