"""Models that began in fairseq or Marian, as transformers has them: their weights, and how they open."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from transformer.config import TransformerConfig
from transformer.families.family import every_part
from transformer.families.pieces import PublishedVocabulary, check_ids
from transformer.families.published import Json
from transformer.families.rules import search_rules
from transformer.families.weights import Stored, check_names, read_weights, table_names, tables
from transformer.storage.description import read_card, read_heads
from transformer.storage.directory import Checkpoint
from transformer.storage.tensors import StoredTensor

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


BIAS = "final_logits_bias"
UNUSED_ROWS = 2
"""Rows at the start of a table of learned positions that no token has."""
IGNORED = re.compile(r"model\.(encoder|decoder)\.(version|embed_positions\.(weights|_float_tensor))")
"""Tensors of old files that no model reads: a version, and sines, which are computed."""
_BARE = re.compile(r"(shared|encoder|decoder)\.")


def prefixed(stored: Stored) -> Stored:
    """The tensors under their usual names; a model saved without its output projection lacks ``model.``."""
    if not any(_BARE.match(name) for name in stored):
        return stored
    return {
        f"model.{name}" if _BARE.match(name) else name: replace(each, called=name)
        for name, each in stored.items()
    }


def opened(
    directory: Path, values: Json, config: TransformerConfig, stored: Stored, vocabulary: PublishedVocabulary
) -> Checkpoint:
    """The model of a directory whose config and vocabulary have been read; ``values`` is its config.json.

    Names and shapes of all weights are checked before they are read. CheckpointError as for ``load_m2m``.
    """
    config, names = resolve(directory, config, stored)
    check_ids(directory, config, vocabulary)
    rules, notes = search_rules(directory, values, config)
    if ignored := [name for name in stored if IGNORED.fullmatch(name)]:
        notes += (f"This model's files hold {ignored[0]}, which no model reads; it is ignored.",)
    tables = [name for name in names.values() if "embed_positions" in name]
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(
        tables, (UNUSED_ROWS + config.max_positions, config.d_model)
    )
    shapes |= {BIAS: (1, config.n_target_pieces)} if config.output_bias else {}
    stored = {name: stored[name] for name in names.values()}
    skipped = dict.fromkeys(tables, UNUSED_ROWS)
    model = read_weights(directory, config, names, stored, shapes, skipped=skipped)
    heads, damaged = read_heads(directory, config)
    return Checkpoint(config, model, vocabulary, heads, read_card(directory), rules, (*notes, *damaged))


def resolve(
    directory: Path, config: TransformerConfig, stored: Mapping[str, StoredTensor]
) -> tuple[TransformerConfig, dict[str, str]]:
    """Maps our name of every weight to theirs, and adapts the config to the tables that the file holds.

    CheckpointError if a weight is missing, or there is one that no model of this config has.
    """
    chosen = tables(directory, roles(config), stored)
    names = layer_names(config) | table_names(chosen) | ({"output_bias": BIAS} if BIAS in stored else {})
    norms = {"embedding_norm": "layernorm_embedding"} if config.embedding_norm else {}
    norms |= {"final_norm": "layer_norm"} if config.norm == "pre" else {}
    for side in ("encoder", "decoder"):
        if config.positions == "learned":
            names[f"{side}.positions.table"] = f"model.{side}.embed_positions.weight"
        for ours, theirs in norms.items():
            for kind in ("weight", "bias"):
                names[f"{side}.{ours}.{kind}"] = f"model.{side}.{theirs}.{kind}"
    explained = {SHARED, SOURCE, TARGET, OUTPUT, *filter(IGNORED.fullmatch, stored)}
    check_names(directory, names, explained, stored)
    source, target, output = chosen
    found = replace(
        config,
        shared_embeddings=target == source,
        tied_embeddings=output == target,
        output_bias=BIAS in stored,
    )
    return found, names


def layer_names(config: TransformerConfig) -> dict[str, str]:
    """Maps our name of every weight inside the layers to theirs."""
    return {
        f"{stack}.layers.{layer}.{ours}.{kind}": f"model.{stack}.layers.{layer}.{theirs}.{kind}"
        for stack, layer, ours, theirs in every_part(config, ENCODER_PARTS, DECODER_PARTS)
        for kind in ("weight", "bias")
    }
