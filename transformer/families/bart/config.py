"""The config of a BART model, converted to ours: tables of names and defaults. No PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformer.families.published import (
    ACTIVATIONS,
    PAIRS,
    Json,
    built,
    one_of,
    require,
    require_pairs,
    taken,
)
from transformer.model.config import TransformerConfig

FIELDS: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocab_size", 50_265),
    "d_model": ("d_model", 1024),
    "d_ff": ("encoder_ffn_dim", 4096),
    "decoder_d_ff": ("decoder_ffn_dim", 4096),
    "n_heads": ("encoder_attention_heads", 16),
    "n_encoder_layers": ("encoder_layers", 12),
    "n_decoder_layers": ("decoder_layers", 12),
    "dropout": ("dropout", 0.1),
    "scaled_embeddings": ("scale_embedding", False),
    "max_positions": ("max_position_embeddings", 1024),
    "pad_id": ("pad_token_id", 1),
    "bos_id": ("decoder_start_token_id", 2),
    "eos_id": ("eos_token_id", 2),
}
"""Maps our field to their name and the reference's default; those of mBART are the same."""

REQUIRED: dict[str, object] = {
    "is_encoder_decoder": True,
    "normalize_before": False,
    "normalize_embedding": True,
    "add_final_layer_norm": False,
    "static_position_embeddings": False,
    "extra_pos_embeddings": 2,
}
"""Entries of older configs; any other value would mean another architecture."""

CHOICES: Json = {
    "norm": "post",
    "embedding_norm": True,
    "positions": "learned",
    "unk_id": 3,
    "task": "write",
}
"""What all of them have in common."""


def bart_config(values: Json, path: Path) -> TransformerConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is out of range or unsupported."""
    require(values, REQUIRED, path)
    require_pairs(values, PAIRS, path)
    activation = one_of(values, "activation_function", "gelu", ACTIVATIONS, "activation", path)
    return built(taken(values, FIELDS) | CHOICES | {"activation": activation}, path)
