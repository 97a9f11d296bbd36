"""Loads T5 models into our own Transformer: a table maps their names of weights to ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from transformer.config import TransformerConfig
from transformer.families.family import every_part
from transformer.families.pieces import check_ids
from transformer.families.rules import search_rules
from transformer.families.t5.config import t5_config
from transformer.families.t5.vocabulary import INTO, read_vocabulary
from transformer.families.weights import check_names, read_weights, table_names, tables
from transformer.storage.description import CONFIG_FILE, read_card, read_heads
from transformer.storage.directory import Checkpoint, check_sizes
from transformer.storage.files import read_json
from transformer.storage.tensors import StoredTensor, stored_tensors, weight_files

_ATTENTION = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "out_proj": "o"}
SELF = {
    **{f"self_attention.{ours}": f"layer.0.SelfAttention.{theirs}" for ours, theirs in _ATTENTION.items()},
    "self_attention_residual.norm": "layer.0.layer_norm",
}
CROSS = {
    **{f"cross_attention.{ours}": f"layer.1.EncDecAttention.{theirs}" for ours, theirs in _ATTENTION.items()},
    "cross_attention_residual.norm": "layer.1.layer_norm",
}
"""Maps our part of a layer to theirs; each part has a ``weight``."""

SIDES = "encoder", "decoder"
SHARED, OUTPUT = "shared.weight", "lm_head.weight"
SOURCE, TARGET = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
ROLES = (SOURCE, SHARED, TARGET), (TARGET, SHARED, SOURCE), (OUTPUT, SHARED, TARGET, SOURCE)
"""Names under which the tables of the source, the target and the output may be stored."""
IGNORED = re.compile(r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight")
"""A table of positions of cross-attention in old files, which no model reads."""


def load_t5(path: str | Path) -> Checkpoint:
    """Reads a model directory in the format of transformers and the Hub.

    The config is checked before memory is allocated; names and shapes of all weights before they are read.
    CheckpointError if a file is missing, damaged, of another model, or needs an unsupported feature.
    """
    directory = Path(path)
    values = read_json(directory / CONFIG_FILE)
    config = t5_config(values, directory / CONFIG_FILE)
    stored = stored_tensors(weight_files(directory))
    check_sizes(directory, config, {name: tensor.shape for name, tensor in stored.items()})
    untied = values.get("tie_word_embeddings") is False
    config, names = resolve(config, stored, directory, untied)
    vocabulary = read_vocabulary(directory, config.vocab_size)
    check_ids(directory, config, vocabulary)
    if into := [piece for piece in vocabulary.source.ids if INTO.fullmatch(piece)]:  # MADLAD translates
        config = replace(config, task="translate", languages=" ".join(into), prompts="")
    rules, notes = search_rules(directory, values, config)
    stored = {name: stored[name] for name in names.values()}
    model = read_weights(directory, config, names, stored, turned=_buckets().values())
    heads, damaged = read_heads(directory, config)
    return Checkpoint(config, model, vocabulary, heads, read_card(directory), rules, (*notes, *damaged))


def resolve(
    config: TransformerConfig, stored: Mapping[str, StoredTensor], directory: Path, untied: bool
) -> tuple[TransformerConfig, dict[str, str]]:
    """Maps our name of every weight to theirs, and adapts the config to the tables that the file holds.

    ``untied`` says that config.json asks for an output table of its own.

    CheckpointError if a weight is missing, or there is one that no model of this config has.
    """
    chosen = tables(directory, (*ROLES[:2], (OUTPUT,)) if untied else ROLES, stored)
    names = layer_names(config) | _buckets() | table_names(chosen)
    names |= {f"{side}.final_norm.weight": f"{side}.final_layer_norm.weight" for side in SIDES}
    extra = {SHARED, SOURCE, TARGET, OUTPUT, *filter(IGNORED.fullmatch, stored)}
    check_names(directory, names, extra, stored)
    source, target, output = chosen
    return replace(config, shared_embeddings=target == source, tied_embeddings=output == target), names


def layer_names(config: TransformerConfig) -> dict[str, str]:
    """Maps our name of every weight inside the layers to theirs."""
    inner = {"gate": "wi_0", "inner": "wi_1"} if config.gated else {"inner": "wi"}
    encoder, decoder = (
        parts
        | {f"feed_forward.{ours}": f"layer.{last}.DenseReluDense.{theirs}" for ours, theirs in inner.items()}
        | {"feed_forward.outer": f"layer.{last}.DenseReluDense.wo"}
        | {"feed_forward_residual.norm": f"layer.{last}.layer_norm"}
        for parts, last in ((SELF, 1), (SELF | CROSS, 2))
    )
    return {
        f"{stack}.layers.{layer}.{ours}.weight": f"{stack}.block.{layer}.{theirs}.weight"
        for stack, layer, ours, theirs in every_part(config, encoder, decoder)
    }


def _buckets() -> dict[str, str]:
    """The tables of relative positions, one a stack, stored with its first layer, buckets by heads."""
    return {
        f"{side}.positions.weight": f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        for side in SIDES
    }
