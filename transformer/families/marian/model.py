"""Loads OPUS-MT and other Marian models into our own Transformer: tables map their config and weight names.

A Marian model is the paper's post-norm Transformer with a few different choices. Each choice is a value of
``TransformerConfig``: the layout of the sinusoids, whether embeddings are scaled, the activation, the start
token (``<pad>``), a bias on the logits, one embedding table or several, and language pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from transformer.config import TransformerConfig
from transformer.families.fairseq import BIAS, OUTPUT, SHARED, SOURCE, TARGET, layer_names, prefixed, roles
from transformer.families.marian.config import marian_config
from transformer.families.marian.vocabulary import language_pieces, read_vocabulary
from transformer.families.pieces import PublishedVocabulary
from transformer.families.rules import search_rules
from transformer.families.weights import (
    Stored,
    check_names,
    copied,
    read_weights,
    table_names,
    tables,
)
from transformer.model import Transformer
from transformer.storage.description import CONFIG_FILE, read_card, read_heads
from transformer.storage.directory import Checkpoint, check_sizes
from transformer.storage.files import CheckpointError, read_json
from transformer.storage.tensors import StoredTensor, stored_tensors, weight_files
from transformer.text.words import PAD, UNK

POSITIONS = {
    "encoder": "model.encoder.embed_positions.weight",
    "decoder": "model.decoder.embed_positions.weight",
}
POSITION_LIMIT = 1e-2
"""Largest difference allowed between a stored position table and the formula: 16-bit rounding."""


def load_marian(path: str | Path) -> Checkpoint:
    """Reads a model directory in the format of transformers and the Hub.

    The config is checked before memory is allocated; names and shapes of all weights before they are read.
    CheckpointError if a file is missing, damaged, of another model, or needs an unsupported feature.
    """
    directory = Path(path)
    values = read_json(directory / CONFIG_FILE)
    config = marian_config(values, directory / CONFIG_FILE)
    stored = prefixed(stored_tensors(weight_files(directory)))
    check_sizes(directory, config, {name: tensor.shape for name, tensor in stored.items()})
    config, names = resolve(config, stored, directory)
    stored = {name: stored[name] for name in (*names.values(), *POSITIONS.values()) if name in stored}
    vocabulary = read_vocabulary(
        directory, config.vocab_size, config.n_target_pieces, separate=not config.shared_embeddings
    )
    config = _with_pieces(config, vocabulary, directory)
    rules, notes = search_rules(directory, values, config)
    model = _read_weights(directory, config, names, stored)
    (heads, damaged), card = read_heads(directory, config), read_card(directory)
    return Checkpoint(config, model, vocabulary, heads, card, rules, (*notes, *damaged))


def resolve(
    config: TransformerConfig, stored: Mapping[str, StoredTensor], directory: Path
) -> tuple[TransformerConfig, dict[str, str]]:
    """Maps our name of every weight to theirs, and adapts the config to the tables that the file holds.

    Tied tables are stored once, under any of their names, or several times with the same numbers.
    CheckpointError if a weight is missing, or there is one that no model of this config has.
    """
    names = layer_names(config)
    chosen = tables(directory, roles(config), stored)
    source, target, output = chosen
    names |= table_names(chosen)
    if BIAS in stored:
        names["output_bias"] = BIAS
    found = replace(
        config,
        shared_embeddings=target == source,
        tied_embeddings=output == target,
        target_vocab_size=None if target == source else config.target_vocab_size,
        output_bias=BIAS in stored,
    )
    # if the tables differ, the reference ignores the shared one
    explained = {SOURCE, TARGET, OUTPUT, *POSITIONS.values(), *([SHARED] if config.shared_embeddings else [])}
    check_names(directory, names, explained, stored)
    return found, names


def _with_pieces(
    config: TransformerConfig, vocabulary: PublishedVocabulary, directory: Path
) -> TransformerConfig:
    """Adds to the config what only the vocabulary knows: ids of padding and unknown piece, languages."""
    for table in (vocabulary.source, vocabulary.target):
        if table.ids["</s>"] != config.eos_id:
            raise CheckpointError(
                f"config.json in {directory} gives </s> the id {config.eos_id}, but the vocabulary has "
                f"{table.ids['</s>']}; the files belong to different models."
            )
    source = vocabulary.source
    languages = "" if source is not vocabulary.target else " ".join(language_pieces(source))
    return replace(config, pad_id=source.ids[PAD], unk_id=source.ids[UNK], languages=languages)


def _read_weights(
    directory: Path, config: TransformerConfig, names: Mapping[str, str], stored: Stored
) -> Transformer:
    positions = {name: stored[name] for name in POSITIONS.values() if name in stored}
    shapes = dict.fromkeys(positions, (config.max_positions, config.d_model))
    shapes |= {BIAS: (1, config.n_target_pieces)} if config.output_bias else {}
    model = read_weights(directory, config, names, stored, shapes)
    _read_positions(model, positions)
    return model


def _read_positions(model: Transformer, stored: Stored) -> None:
    """Copies stored position tables; CheckpointError if one does not match the formula up to rounding."""
    paths = {name: each.path for name, each in stored.items()}
    for name, tensor in copied(stored):
        stack = model.encoder if name == POSITIONS["encoder"] else model.decoder
        table = stack.positions.added(len(tensor))
        assert table is not None
        if float((tensor - table).abs().max()) > POSITION_LIMIT:
            raise CheckpointError(f"{paths[name]}: {name} does not hold Marian's sinusoids.")
        table.copy_(tensor)
