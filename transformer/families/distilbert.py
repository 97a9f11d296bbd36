"""DistilBERT: BERT with half of its layers, and without vectors for the texts of a pair."""

from pathlib import Path

from transformer.config import EncoderConfig
from transformer.families.alone import EMBEDDING, Source, both, of_layers, taken
from transformer.families.encoder import (
    POSITIONS,
    EncoderFamily,
    Head,
    encoder_config,
    refuse,
    unread,
)
from transformer.families.family import Json, activation_of

FIELDS = {
    "vocab_size": "vocab_size",
    "d_model": "dim",
    "d_ff": "hidden_dim",
    "n_heads": "n_heads",
    "n_layers": "n_layers",
    "max_positions": "max_position_embeddings",
}
PARTS = {
    "self_attention.q_proj": "attention.q_lin",
    "self_attention.k_proj": "attention.k_lin",
    "self_attention.v_proj": "attention.v_lin",
    "self_attention.out_proj": "attention.out_lin",
    "self_attention_residual.norm": "sa_layer_norm",
    "feed_forward.inner": "ffn.lin1",
    "feed_forward.outer": "ffn.lin2",
    "feed_forward_residual.norm": "output_layer_norm",
}
"""Parts of a layer, which lie in a file as ours."""


def config(values: Json, path: Path) -> EncoderConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is unsupported."""
    refuse(values, {}, path)
    ours = taken(values, FIELDS, path) | {
        "activation": activation_of(values, "activation", "gelu", path),
        "norm_epsilon": 1e-12,
    }
    return encoder_config(ours, path)


def sources(config: EncoderConfig) -> dict[str, Source]:
    """Our name of every weight, and where a file holds it."""
    names = {
        f"{EMBEDDING}.weight": Source("embeddings.word_embeddings.weight"),
        POSITIONS: Source("embeddings.position_embeddings.weight"),
        **both("encoder.embedding_norm", "embeddings.LayerNorm", biases=True),
    }
    for ours, theirs in of_layers(config, "transformer.layer.{}", "encoder"):
        for our, their in PARTS.items():
            names |= both(f"{ours}.{our}", f"{theirs}.{their}", biases=True)
    return names


DISTILBERT = EncoderFamily(
    name="DistilBERT",
    types=("distilbert",),
    config=config,
    sources=sources,
    prefix="distilbert.",
    tokenizers=("DistilBertTokenizer", "BertTokenizer"),
    unread=unread(),
    head=Head(
        linear="vocab_transform",
        norm="vocab_layer_norm",
        output="vocab_projector",
    ),
)
