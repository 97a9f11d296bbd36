"""The config of a T5 or mT5 model, converted to ours: tables of names and defaults. No PyTorch.

Against the paper's Transformer: RMSNorm before each sub-layer, no biases, scores that are not divided by
√d_k, and relative positions in buckets, one table for all layers of a stack (Raffel et al. 2020, 2.1).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformer.config import TransformerConfig
from transformer.families.published import Json, built, one_of, require, taken

FIELDS: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocab_size", 32_128),
    "d_model": ("d_model", 512),
    "head_width": ("d_kv", 64),
    "d_ff": ("d_ff", 2048),
    "n_heads": ("num_heads", 8),
    "n_encoder_layers": ("num_layers", 6),
    "dropout": ("dropout_rate", 0.1),
    "norm_epsilon": ("layer_norm_epsilon", 1e-6),
    "pad_id": ("pad_token_id", 0),
    "eos_id": ("eos_token_id", 1),
    "trained_length": ("n_positions", None),
}
"""Maps our field to their name and the reference's default, used if config.json lacks the entry."""
OF_MT5: dict[str, Any] = {
    "vocab_size": 250_112,
    "d_ff": 1024,
    "num_layers": 8,
    "num_heads": 6,
    "feed_forward_proj": "gated-gelu",
}
"""Other defaults of ``model_type`` "mt5"."""

FEED_FORWARD = {
    "relu": ("relu", False),
    "gelu": ("gelu", False),
    "gelu_new": ("gelu_tanh", False),
    "silu": ("silu", False),
    "gated-relu": ("relu", True),
    "gated-gelu": ("gelu_tanh", True),
    "gated-silu": ("silu", True),
}
"""Their name of a feed-forward network: our activation, and whether it is gated."""

REQUIRED: dict[str, object] = {
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "is_encoder_decoder": True,
}
"""Entries whose other values would mean another architecture."""

CHOICES: Json = {
    "norm": "pre",
    "norm_by": "rms",
    "biases": False,
    "scaled_scores": False,
    "positions": "t5",
    "scaled_embeddings": False,
    "unk_id": 2,
    "task": "write",
}
"""What all of them have in common."""


PROMPTS = (
    "translate English to German: ",
    "translate English to French: ",
    "translate English to Romanian: ",
    "summarize: ",
)
"""Beginnings of texts of T5 1.0's training, offered if config.json names none."""
MOST_PROMPTS = 8


def t5_config(values: Json, path: Path) -> TransformerConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is out of range or unsupported."""
    multilingual = values.get("model_type") == "mt5"
    values = (OF_MT5 if multilingual else {}) | values
    require(values, REQUIRED, path)
    activation, gated = one_of(
        values, "feed_forward_proj", "relu", FEED_FORWARD, "feed-forward network", path
    )
    ours = taken(values, FIELDS) | CHOICES | {"activation": activation, "gated": gated}
    depth, start = values.get("num_decoder_layers"), values.get("decoder_start_token_id")
    ours["n_decoder_layers"] = ours["n_encoder_layers"] if depth is None else depth
    ours["bos_id"] = ours["pad_id"] if start is None else start
    ours["scaled_output"] = not multilingual and _scales(values)
    ours["prompts"] = "\n".join(() if multilingual else _prompts(values) or PROMPTS)
    return built(ours, path)


def _prompts(values: Json) -> tuple[str, ...]:
    """The beginnings of texts that config.json names for the tasks of its model."""
    tasks = values.get("task_specific_params")
    listed = tasks.values() if isinstance(tasks, dict) else ()
    named = [task.get("prefix") for task in listed if isinstance(task, dict)]
    found = (each for each in named if isinstance(each, str) and each.strip() and each.isprintable())
    return tuple(dict.fromkeys(each[:80] for each in found))[:MOST_PROMPTS]


def _scales(values: Json) -> bool:
    """Whether the output is divided by √d_model: T5 1.0 does, 1.1 says that its tables are not tied.

    transformers 5 ties every T5, so that what it saves says so, and what was meant stands in a second entry.
    """
    said = values.get("scale_decoder_outputs")
    return said if isinstance(said, bool) else values.get("tie_word_embeddings") is not False
