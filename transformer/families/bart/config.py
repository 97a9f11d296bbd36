"""The config of a BART model, converted to ours: tables of names and defaults. No PyTorch."""

from __future__ import annotations

from pathlib import Path

from transformer.config import TransformerConfig
from transformer.families.published import FAIRSEQ, Json, config_of

FIELDS = FAIRSEQ | {
    "vocab_size": ("vocab_size", 50_265),
    "scaled_embeddings": ("scale_embedding", False),
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
    return config_of(values, path, FIELDS, REQUIRED, "gelu", CHOICES)
