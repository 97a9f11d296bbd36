"""Loads M2M-100 and NLLB-200 models into our own Transformer."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from transformer.families.fairseq import OUTPUT, SHARED, SOURCE, TARGET, layer_names, roles
from transformer.families.m2m.config import m2m_config
from transformer.families.m2m.vocabulary import read_vocabulary
from transformer.families.rules import search_rules
from transformer.families.weights import check_names, read_weights, table_names, tables
from transformer.storage.description import CONFIG_FILE, read_card, read_heads
from transformer.storage.directory import Checkpoint, check_sizes
from transformer.storage.files import CheckpointError, read_json
from transformer.storage.tensors import stored_tensors, weight_files
from transformer.text.words import EOS, PAD, UNK

IGNORED = re.compile(r"model\.(encoder|decoder)\.(version|embed_positions\.(weights|_float_tensor))")
"""Tensors of old files that no model reads: a version, and sines, which are computed."""


def load_m2m(path: str | Path) -> Checkpoint:
    """Reads a model directory in the format of transformers and the Hub.

    The config is checked before memory is allocated; names and shapes of all weights before they are read.
    CheckpointError if a file is missing, damaged, of another model, or needs an unsupported feature.
    """
    directory = Path(path)
    values = read_json(directory / CONFIG_FILE)
    config = m2m_config(values, directory / CONFIG_FILE)
    stored = stored_tensors(weight_files(directory))
    check_sizes(directory, config, {name: tensor.shape for name, tensor in stored.items()})
    chosen = tables(directory, roles(config), stored)
    names = layer_names(config) | table_names(chosen)
    for side in ("encoder", "decoder"):
        for kind in ("weight", "bias"):
            names[f"{side}.final_norm.{kind}"] = f"model.{side}.layer_norm.{kind}"
    ignored = [name for name in stored if IGNORED.fullmatch(name)]
    check_names(directory, names, {SHARED, SOURCE, TARGET, OUTPUT, *ignored}, stored)
    vocabulary = read_vocabulary(directory, config.vocab_size)
    for piece, number in ((EOS, config.eos_id), (PAD, config.pad_id), (UNK, config.unk_id)):
        if vocabulary.source.ids[piece] != number:
            raise CheckpointError(
                f"config.json in {directory} gives {piece} the id {number}, but the vocabulary has "
                f"{vocabulary.source.ids[piece]}; the files belong to different models."
            )
    source, target, output = chosen
    config = replace(
        config,
        shared_embeddings=target == source,
        tied_embeddings=output == target,
        languages=" ".join(vocabulary.languages),
        language_pair=True,
    )
    rules, notes = search_rules(directory, values, config)
    if ignored:
        notes += (f"This model's files hold {ignored[0]}, which no model reads; it is ignored.",)
    model = read_weights(directory, config, names, {name: stored[name] for name in names.values()})
    return Checkpoint(config, model, vocabulary, read_heads(directory), read_card(directory), rules, notes)
