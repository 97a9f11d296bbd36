"""The config of an mBART-50 model, converted to ours: tables of names and defaults. No PyTorch."""

from __future__ import annotations

from pathlib import Path

from transformer.config import TransformerConfig
from transformer.families.bart.config import FIELDS
from transformer.families.published import Json, config_of
from transformer.storage.files import CheckpointError

REQUIRED: dict[str, object] = {
    "is_encoder_decoder": True,
    "normalize_before": True,
    "normalize_embedding": True,
    "add_final_layer_norm": True,
    "static_position_embeddings": False,
}
"""Entries of older configs; any other value would mean another architecture."""

CHOICES: Json = {
    "norm": "pre",
    "embedding_norm": True,
    "positions": "learned",
    "unk_id": 3,
    "language_pair": True,
}
"""What all of them have in common."""

OLD = (
    "{} holds an mBART model of 25 languages, which puts the language behind the text; only mBART-50, with "
    "the language before the text, is supported."
)
"""What is said of mBART-cc25 and what was trained from it: the same ``model_type``, another order."""
_OLD_TOKENIZERS = "MBartTokenizer", "MBartTokenizerFast"


def mbart_config(values: Json, path: Path) -> TransformerConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is out of range or unsupported."""
    if values.get("tokenizer_class") in _OLD_TOKENIZERS or values.get("vocab_size") == 250_027:
        raise CheckpointError(OLD.format(path.parent))
    return config_of(values, path, FIELDS, REQUIRED, "gelu", CHOICES)
