"""OPT: pre-norm decoders with learned positions, of which the first two rows belong to no token."""

import re
from pathlib import Path

from transformer.config import LanguageModelConfig
from transformer.families.alone import EMBEDDING, FIELDS, Source, after_rows, both, of_layers, taken
from transformer.families.decoder import FINAL_NORM, OUTPUT, DecoderFamily, decoder_config, refuse
from transformer.families.family import Json, activation_of
from transformer.storage.files import CheckpointError

REQUIRED: dict[str, object] = {
    "do_layer_norm_before": True,
    "_remove_final_layer_norm": False,
    "enable_bias": True,
    "layer_norm_elementwise_affine": True,
}
"""Entries whose other values would mean another architecture."""
UNUSED_ROWS = 2
PARTS = {
    "self_attention.q_proj": "self_attn.q_proj",
    "self_attention.k_proj": "self_attn.k_proj",
    "self_attention.v_proj": "self_attn.v_proj",
    "self_attention.out_proj": "self_attn.out_proj",
    "self_attention_residual.norm": "self_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}
"""Parts of a layer, which lie in a file as ours."""


def config(values: Json, path: Path) -> LanguageModelConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is unsupported."""
    refuse(values, REQUIRED, path)
    ours = taken(values, FIELDS | {"d_ff": "ffn_dim"}, path)
    if values.get("word_embed_proj_dim", ours["d_model"]) != ours["d_model"]:
        raise CheckpointError(
            f"{path} says word_embed_proj_dim = {values['word_embed_proj_dim']!r:.80}; only models "
            "whose embeddings are as wide as their layers are supported."
        )
    ours |= {
        "positions": "learned",
        "activation": activation_of(values, "activation_function", "relu", path),
        "tied_embeddings": values.get("tie_word_embeddings", True) is not False,
    }
    return decoder_config(ours, values, path)


def sources(config: LanguageModelConfig) -> dict[str, Source]:
    """Our name of every weight, and where a file holds it."""
    table = Source("embed_positions.weight", after_rows(UNUSED_ROWS))
    names = {
        f"{EMBEDDING}.weight": Source("embed_tokens.weight"),
        "decoder.positions.table": table,
        f"{OUTPUT}.weight": Source("lm_head.weight"),
        **both(FINAL_NORM, "final_layer_norm", biases=True),
    }
    for ours, theirs in of_layers(config, "layers.{}"):
        for our, their in PARTS.items():
            names |= both(f"{ours}.{our}", f"{theirs}.{their}", biases=True)
    return names


OPT = DecoderFamily(
    name="OPT",
    types=("opt",),
    config=config,
    sources=sources,
    prefix="model.decoder.",
    unread=re.compile(r"version"),
    byte_level=True,
)
