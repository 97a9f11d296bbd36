"""Llama and what is built like it: Mistral, SmolLM, TinyLlama, Qwen2, Qwen2.5 and Qwen3.

Pre-norm decoders with RMSNorm, gated networks, rotary positions, and keys that groups of heads
share.
"""

import re
from pathlib import Path

from transformer.config import LanguageModelConfig
from transformer.families.alone import EMBEDDING, FIELDS, Source, both, number, of_layers, taken
from transformer.families.decoder import (
    FINAL_NORM,
    LONGEST_TEXT,
    OUTPUT,
    DecoderFamily,
    check_window,
    decoder_config,
    halves,
    refuse,
    rotation,
)
from transformer.families.family import Json, activation_of

REQUIRED: dict[str, object] = {"attention_bias": False, "mlp_bias": False}
"""Entries whose other values would mean another architecture."""
BIASED = ("qwen2",)
"""Types whose queries, keys and values have biases."""
HEAD_NORMED = ("qwen3",)
"""Types whose heads normalise queries and keys."""
PARTS = {
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.inner": "mlp.up_proj",
    "feed_forward.outer": "mlp.down_proj",
    "self_attention_residual.norm": "input_layernorm",
    "feed_forward_residual.norm": "post_attention_layernorm",
    "self_attention.out_proj": "self_attn.o_proj",
}
"""Parts of a layer that lie in a file as ours."""


def config(values: Json, path: Path) -> LanguageModelConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is unsupported."""
    refuse(values, REQUIRED, path)
    check_window(values, LONGEST_TEXT, path)
    kind = values.get("model_type")
    ours = taken(values, FIELDS, path) | rotation(values, path)
    ours |= {
        "n_key_heads": values.get("num_key_value_heads"),
        "head_width": values.get("head_dim"),
        "norm_by": "rms",
        "norm_epsilon": number(values, "rms_norm_eps", 1e-6, path),
        "activation": activation_of(values, "hidden_act", "silu", path),
        "gated": True,
        "biases": False,
        "attention_biases": True if kind in BIASED else None,
        "head_norm": kind in HEAD_NORMED,
        "tied_embeddings": values.get("tie_word_embeddings") is True,
    }
    return decoder_config(ours, values, path)


def sources(config: LanguageModelConfig) -> dict[str, Source]:
    """Our name of every weight, and where a file holds it."""
    names = {
        f"{EMBEDDING}.weight": Source("embed_tokens.weight"),
        f"{OUTPUT}.weight": Source("lm_head.weight"),
        **both(FINAL_NORM, "norm", biases=False),
    }
    turned = halves(config.d_head)
    biased = config.attention_biases is True
    for ours, theirs in of_layers(config, "layers.{}"):
        attention = f"{ours}.self_attention"
        names |= both(f"{attention}.q_proj", f"{theirs}.self_attn.q_proj", biased, turned)
        names |= both(f"{attention}.k_proj", f"{theirs}.self_attn.k_proj", biased, turned)
        names |= both(f"{attention}.v_proj", f"{theirs}.self_attn.v_proj", biased)
        if config.head_norm:
            names |= both(f"{attention}.q_norm", f"{theirs}.self_attn.q_norm", False, turned)
            names |= both(f"{attention}.k_norm", f"{theirs}.self_attn.k_norm", False, turned)
        for our, their in PARTS.items():
            names |= both(f"{ours}.{our}", f"{theirs}.{their}", biases=False)
    return names


LLAMA = DecoderFamily(
    name="Llama",
    types=("llama", "mistral", "qwen2", "qwen3"),
    config=config,
    sources=sources,
    prefix="model.",
    unread=re.compile(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq"),
)
