"""Names of weights in models that began in fairseq or Marian, as transformers has them."""

from __future__ import annotations

from transformer.families.family import every_part
from transformer.model.config import TransformerConfig

_ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj")
ENCODER_PARTS = {
    **{f"self_attention.{part}": f"self_attn.{part}" for part in _ATTENTION},
    "self_attention_residual.norm": "self_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}
DECODER_PARTS = ENCODER_PARTS | {
    **{f"cross_attention.{part}": f"encoder_attn.{part}" for part in _ATTENTION},
    "cross_attention_residual.norm": "encoder_attn_layer_norm",
}
"""Maps our part of a layer to theirs; each part has a ``weight`` and a ``bias``."""

SHARED = "model.shared.weight"
SOURCE = "model.encoder.embed_tokens.weight"
TARGET = "model.decoder.embed_tokens.weight"
OUTPUT = "lm_head.weight"
TIED = {
    (True, True): ((SHARED, SOURCE, TARGET, OUTPUT),),
    (True, False): ((SHARED, SOURCE, TARGET), (OUTPUT,)),
    (False, True): ((SOURCE,), (TARGET, OUTPUT)),
    (False, False): ((SOURCE,), (TARGET,), (OUTPUT,)),
}
"""By (shared, tied) embeddings: the groups of names of one table; a file may hold any of a group."""


def roles(config: TransformerConfig) -> list[tuple[str, ...]]:
    """For the tables of source, target and output: the names under which a file may hold each."""
    groups = TIED[config.shared_embeddings, config.tied_embeddings]
    return [(role, *next(group for group in groups if role in group)) for role in (SOURCE, TARGET, OUTPUT)]


def layer_names(config: TransformerConfig) -> dict[str, str]:
    """Maps our name of every weight inside the layers to theirs."""
    return {
        f"{stack}.layers.{layer}.{ours}.{kind}": f"model.{stack}.layers.{layer}.{theirs}.{kind}"
        for stack, layer, ours, theirs in every_part(config, ENCODER_PARTS, DECODER_PARTS)
        for kind in ("weight", "bias")
    }
