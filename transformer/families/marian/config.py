"""The config of a Marian model, converted to ours: tables of names and defaults. No PyTorch."""

from __future__ import annotations

from pathlib import Path

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

FIELDS = {
    "vocab_size": ("vocab_size", 58_101),
    "d_model": ("d_model", 1024),
    "d_ff": ("encoder_ffn_dim", 4096),
    "decoder_d_ff": ("decoder_ffn_dim", 4096),
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

REQUIRED: dict[str, object] = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
    "is_encoder_decoder": True,
}
"""Entries of older configs; any other value would mean another architecture."""


def marian_config(values: Json, path: Path) -> TransformerConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is out of range or unsupported."""
    require(values, REQUIRED, path)
    require_pairs(values, PAIRS, path)
    activation = one_of(values, "activation_function", "gelu", ACTIVATIONS, "activation", path)
    ours = taken(values, FIELDS)
    if not ours["shared_embeddings"]:
        ours["target_vocab_size"] = values.get("decoder_vocab_size") or None
    ours |= {"activation": activation, "norm": "post", "sine_layout": "halves", "unk_id": 0}
    return built(ours, path)
