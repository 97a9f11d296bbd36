"""The config of a Marian model, converted to ours: tables of names and defaults. No PyTorch."""

from __future__ import annotations

from pathlib import Path

from transformer.config import TransformerConfig
from transformer.families.published import FIELDS as SHARED
from transformer.families.published import Json, config_of

FIELDS = SHARED | {
    "vocab_size": ("vocab_size", 58_101),
    "shared_embeddings": ("share_encoder_decoder_embeddings", True),
    "tied_embeddings": ("tie_word_embeddings", True),
    "scaled_embeddings": ("scale_embedding", False),
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
    choices: Json = {"norm": "post", "sine_layout": "halves", "unk_id": 0}
    if not values.get("share_encoder_decoder_embeddings", True):
        choices["target_vocab_size"] = values.get("decoder_vocab_size") or None
    return config_of(values, path, FIELDS, REQUIRED, "gelu", choices)
