"""GPT-NeoX and Pythia: decoders whose sub-layers read one stream, with rotary positions in a part
of each head."""

import re
from pathlib import Path

from transformer.config import LanguageModelConfig
from transformer.families.alone import EMBEDDING, FIELDS, Source, both, number, of_layers, taken
from transformer.families.decoder import (
    FINAL_NORM,
    OUTPUT,
    DecoderFamily,
    decoder_config,
    of_each_head,
    refuse,
    rotation,
)
from transformer.families.family import Json, activation_of

REQUIRED: dict[str, object] = {"attention_bias": True}
"""Entries whose other values would mean another architecture."""


def config(values: Json, path: Path) -> LanguageModelConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is unsupported."""
    refuse(values, REQUIRED, path)
    ours = taken(values, FIELDS, path)
    entries = values.get("rope_parameters") or {}
    older = number(values, "rotary_pct", 0.25, path)
    part = number(entries, "partial_rotary_factor", older, path)
    base = {"rope_theta": number(values, "rotary_emb_base", 10_000.0, path)}
    ours |= rotation(base | values, path)
    if isinstance(ours["d_model"], int) and isinstance(ours["n_heads"], int) and ours["n_heads"]:
        ours["rotary_width"] = int(ours["d_model"] // ours["n_heads"] * part)
    ours |= {
        "norm_epsilon": number(values, "layer_norm_eps", 1e-5, path),
        "activation": activation_of(values, "hidden_act", "gelu", path),
        "parallel": values.get("use_parallel_residual", True) is not False,
        "tied_embeddings": values.get("tie_word_embeddings") is True,
    }
    return decoder_config(ours, values, path)


def sources(config: LanguageModelConfig) -> dict[str, Source]:
    """Our name of every weight, and where a file holds it."""
    names = {
        f"{EMBEDDING}.weight": Source("embed_in.weight"),
        f"{OUTPUT}.weight": Source("embed_out.weight"),
        **both(FINAL_NORM, "final_layer_norm", biases=True),
    }
    for ours, theirs in of_layers(config, "layers.{}"):
        attention = f"{ours}.self_attention"
        joined = f"{theirs}.attention.query_key_value"
        for place, product in enumerate(("q_proj", "k_proj", "v_proj")):
            turned = None if product == "v_proj" else config.rotary_width
            layout = of_each_head(place, config.n_heads, turned)
            names |= both(f"{attention}.{product}", joined, True, layout)
        names |= both(f"{attention}.out_proj", f"{theirs}.attention.dense", True)
        names |= both(f"{attention}_residual.norm", f"{theirs}.input_layernorm", True)
        names |= both(f"{ours}.feed_forward.inner", f"{theirs}.mlp.dense_h_to_4h", True)
        names |= both(f"{ours}.feed_forward.outer", f"{theirs}.mlp.dense_4h_to_h", True)
        norm = f"{theirs}.post_attention_layernorm"
        names |= both(f"{ours}.feed_forward_residual.norm", norm, True)
    return names


NEOX = DecoderFamily(
    name="GPT-NeoX",
    types=("gpt_neox",),
    config=config,
    sources=sources,
    prefix="gpt_neox.",
    unread=re.compile(r"layers\.\d+\.attention\.((masked_)?bias|rotary_emb\.inv_freq)"),
)
