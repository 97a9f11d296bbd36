"""GPT-2 and DistilGPT-2: pre-norm decoders with learned positions and a byte-level vocabulary."""

import re
from pathlib import Path

from transformer.config import LanguageModelConfig
from transformer.families.alone import EMBEDDING, Source, both, number, of_layers, taken
from transformer.families.decoder import (
    FINAL_NORM,
    OUTPUT,
    DecoderFamily,
    decoder_config,
    refuse,
    third,
    transposed,
)
from transformer.families.family import Json, activation_of

FIELDS = {
    "vocab_size": "vocab_size",
    "d_model": "n_embd",
    "n_heads": "n_head",
    "n_layers": "n_layer",
    "max_positions": "n_positions",
}
REQUIRED: dict[str, object] = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}
"""Entries whose other values would mean another architecture."""


def config(values: Json, path: Path) -> LanguageModelConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is unsupported."""
    refuse(values, REQUIRED, path)
    ours = taken(values, FIELDS, path)
    inner = values.get("n_inner") or 4 * ours["d_model"]
    ours |= {
        "d_ff": inner,
        "positions": "learned",
        "activation": activation_of(values, "activation_function", "gelu_new", path),
        "norm_epsilon": number(values, "layer_norm_epsilon", 1e-5, path),
        "tied_embeddings": values.get("tie_word_embeddings", True) is not False,
    }
    return decoder_config(ours, values, path)


def sources(config: LanguageModelConfig) -> dict[str, Source]:
    """Our name of every weight, and where a file holds it."""
    names = {
        f"{EMBEDDING}.weight": Source("wte.weight"),
        "decoder.positions.table": Source("wpe.weight"),
        f"{OUTPUT}.weight": Source("lm_head.weight"),
        **both(FINAL_NORM, "ln_f", biases=True),
    }
    for ours, theirs in of_layers(config, "h.{}"):
        attention = f"{ours}.self_attention"
        for place, product in enumerate(("q_proj", "k_proj", "v_proj")):
            names |= both(f"{attention}.{product}", f"{theirs}.attn.c_attn", True, third(place))
        names |= both(f"{attention}.out_proj", f"{theirs}.attn.c_proj", True, transposed())
        names |= both(f"{attention}_residual.norm", f"{theirs}.ln_1", True)
        names |= both(f"{ours}.feed_forward.inner", f"{theirs}.mlp.c_fc", True, transposed())
        names |= both(f"{ours}.feed_forward.outer", f"{theirs}.mlp.c_proj", True, transposed())
        names |= both(f"{ours}.feed_forward_residual.norm", f"{theirs}.ln_2", True)
    return names


GPT2 = DecoderFamily(
    name="GPT-2",
    types=("gpt2",),
    config=config,
    sources=sources,
    prefix="transformer.",
    unread=re.compile(r"h\.\d+\.attn\.(masked_)?bias"),
    byte_level=True,
)
