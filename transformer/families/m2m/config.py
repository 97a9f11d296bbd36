"""The config of M2M-100 and NLLB-200, converted to ours: tables of names and defaults. No PyTorch."""

from __future__ import annotations

from pathlib import Path

from transformer.config import TransformerConfig
from transformer.families.published import FAIRSEQ, Json, config_of

FIELDS = FAIRSEQ | {
    "vocab_size": ("vocab_size", 128_112),
    "scaled_embeddings": ("scale_embedding", True),
}
"""Maps our field to their name and the reference's default, used if config.json lacks the entry."""

REQUIRED: dict[str, object] = {
    "is_encoder_decoder": True,
    "tie_word_embeddings": True,
    "normalize_before": True,
    "static_position_embeddings": True,
}
"""Entries whose other values would mean another architecture; those of old files among them."""

CHOICES: Json = {"norm": "pre", "sine_layout": "inclusive", "first_position": 2, "unk_id": 3}
"""What all of them have in common. Positions 0 and 1 belong to fairseq's ``<s>`` and padding."""


def m2m_config(values: Json, path: Path) -> TransformerConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is out of range or unsupported."""
    return config_of(values, path, FIELDS, REQUIRED, "relu", CHOICES)
