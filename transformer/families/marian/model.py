"""Loads OPUS-MT and other Marian models into our own Transformer: tables map their config and weight names.

A Marian model is the paper's post-norm Transformer with a few different choices. Each choice is a value of
``TransformerConfig``: the layout of the sinusoids, whether embeddings are scaled, the activation, the start
token (``<pad>``), a bias on the logits, one embedding table or several, and language pieces.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from transformer.families.family import every_part
from transformer.families.marian.config import marian_config
from transformer.families.marian.rules import search_rules
from transformer.families.marian.vocabulary import MarianVocabulary, read_vocabulary
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.storage.description import CONFIG_FILE, read_card, read_heads
from transformer.storage.directory import Checkpoint, check_sizes, empty_model
from transformer.storage.files import CheckpointError, read_json
from transformer.storage.tensors import StoredTensor, read_tensors, stored_tensors, weight_files
from transformer.text.words import PAD, UNK

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

BIAS = "final_logits_bias"
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
    stored = stored_tensors(weight_files(directory))
    check_sizes(directory, config, {name: tensor.shape for name, tensor in stored.items()})
    config, names = resolve(config, stored, directory)
    stored = {name: stored[name] for name in (*names.values(), *POSITIONS.values()) if name in stored}
    vocabulary = read_vocabulary(
        directory, config.vocab_size, config.n_target_pieces, separate=not config.shared_embeddings
    )
    config = _with_pieces(config, vocabulary, directory)
    rules, notes = search_rules(directory, values, config)
    model = _read_weights(directory, config, names, stored)
    heads, card = read_heads(directory), read_card(directory)
    return Checkpoint(config, model, vocabulary, heads, card, rules, notes)


def layer_names(config: TransformerConfig) -> dict[str, str]:
    """Maps our name of every weight inside the layers to theirs."""
    return {
        f"{stack}.layers.{layer}.{ours}.{kind}": f"model.{stack}.layers.{layer}.{theirs}.{kind}"
        for stack, layer, ours, theirs in every_part(config, ENCODER_PARTS, DECODER_PARTS)
        for kind in ("weight", "bias")
    }


def resolve(
    config: TransformerConfig, stored: Mapping[str, StoredTensor], directory: Path
) -> tuple[TransformerConfig, dict[str, str]]:
    """Maps our name of every weight to theirs, and adapts the config to the tables that the file holds.

    Tied tables are stored once, under any of their names, or several times with the same numbers.
    CheckpointError if a weight is missing, or there is one that no model of this config has.
    """
    names = layer_names(config)
    source, target, output = _tables(config, stored, directory)
    names["embedding.weight"] = source
    if target != source:
        names["target_embedding.weight"] = target
    if output != target:
        names["output.weight"] = output
    if BIAS in stored:
        names["output_bias"] = BIAS
    found = replace(
        config,
        shared_embeddings=target == source,
        tied_embeddings=output == target,
        target_vocab_size=None if target == source else config.target_vocab_size,
        output_bias=BIAS in stored,
    )
    _check_names(directory, config, names, stored)
    return found, names


def _tables(config: TransformerConfig, stored: Mapping[str, StoredTensor], directory: Path) -> list[str]:
    """Stored names of source, target and output table; one equal to an earlier one gets the earlier name."""
    groups = TIED[config.shared_embeddings, config.tied_embeddings]
    chosen: list[str] = []
    for role in (SOURCE, TARGET, OUTPUT):
        group = next(names for names in groups if role in names)
        name = next((name for name in (role, *group) if name in stored), None)
        if name is None:
            raise CheckpointError(f"The weights in {directory} lack {role}.")
        chosen.append(next((old for old in reversed(chosen) if same(stored, old, name)), name))
    return chosen


def same(stored: Mapping[str, StoredTensor], one: str, other: str) -> bool:
    """True if two stored tensors are the same tensor or hold the same numbers."""
    first, second = stored[one], stored[other]
    if one == other or (first.storage is not None and first.storage == second.storage):
        return True
    if first.shape != second.shape:
        return False
    kept: Tensor | None = None
    for _, tensor in read_tensors({one: first, other: second}):
        if kept is None:
            kept = tensor.clone()
        else:
            return torch.equal(kept, tensor.to(kept.dtype))
    return False


def _check_names(
    directory: Path, config: TransformerConfig, names: Mapping[str, str], stored: Mapping[str, StoredTensor]
) -> None:
    missing = sorted(set(names.values()) - set(stored))
    if missing:
        raise CheckpointError(
            f"The weights in {directory} lack {len(missing)} that config.json asks for; "
            f"the first is {missing[0]}."
        )
    explained = {*names.values(), SOURCE, TARGET, OUTPUT, *POSITIONS.values()}
    # if the tables differ, the reference ignores this tensor
    explained |= {SHARED} if config.shared_embeddings else set()
    extra = sorted(set(stored) - explained)
    if extra:
        raise CheckpointError(
            f"The weights in {directory} include {len(extra)} that config.json does not describe, "
            f"such as {extra[0]!r:.80}."
        )


def _with_pieces(
    config: TransformerConfig, vocabulary: MarianVocabulary, directory: Path
) -> TransformerConfig:
    """Adds to the config what only the vocabulary knows: ids of padding and unknown piece, languages."""
    for table in (vocabulary.source, vocabulary.target):
        if table.ids["</s>"] != config.eos_id:
            raise CheckpointError(
                f"config.json in {directory} gives </s> the id {config.eos_id}, but the vocabulary has "
                f"{table.ids['</s>']}; the files belong to different models."
            )
    source = vocabulary.source
    languages = "" if source is not vocabulary.target else " ".join(source.languages)
    return replace(config, pad_id=source.ids[PAD], unk_id=source.ids[UNK], languages=languages)


def _read_weights(
    directory: Path, config: TransformerConfig, names: Mapping[str, str], stored: dict[str, StoredTensor]
) -> Transformer:
    model = empty_model(directory, config)
    assert isinstance(model, Transformer)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    _check_shapes(config, names, stored, expected)
    ours = {theirs: name for name, theirs in names.items()}
    positions = {name: stored.pop(name) for name in POSITIONS.values() if name in stored}
    state = {ours[name]: tensor.view(expected[ours[name]]) for name, tensor in _copied(stored)}
    model.load_state_dict(state, assign=True)
    _read_positions(model, positions)
    return model.requires_grad_(False).eval()


def _check_shapes(
    config: TransformerConfig,
    names: Mapping[str, str],
    stored: Mapping[str, StoredTensor],
    expected: Mapping[str, tuple[int, ...]],
) -> None:
    asked = {theirs: expected[ours] for ours, theirs in names.items()}
    if BIAS in asked:
        asked[BIAS] = (1, *asked[BIAS])
    table = (config.max_positions, config.d_model)
    asked |= {name: table for name in POSITIONS.values() if name in stored}
    for name, shape in asked.items():
        if stored[name].shape != shape:
            raise CheckpointError(
                f"{stored[name].path}: the weight {name} has the shape {stored[name].shape!s:.80}, but "
                f"config.json asks for {shape}; the files belong to different models."
            )


def _copied(stored: dict[str, StoredTensor]) -> Iterator[tuple[str, Tensor]]:
    """Yields a float32 copy of every tensor, laid out as ``model.input_major`` does.

    Each copied tensor is removed from ``stored``, which frees a tensor that was held in memory.
    CheckpointError if a number is NaN or infinite.
    """
    for name, tensor in read_tensors(stored):
        copy = torch.empty(tensor.t().shape, dtype=torch.float32).copy_(tensor.t())
        low, high = torch.aminmax(copy)
        if not math.isfinite(low.item() + high.item()):
            raise CheckpointError(f"{stored[name].path} contains NaN or infinite values.")
        del stored[name], tensor
        yield name, copy.t()


def _read_positions(model: Transformer, stored: dict[str, StoredTensor]) -> None:
    """Copies stored position tables; CheckpointError if one does not match the formula up to rounding."""
    paths = {name: each.path for name, each in stored.items()}
    for name, tensor in _copied(stored):
        stack = model.encoder if name == POSITIONS["encoder"] else model.decoder
        table = stack.positions.added(len(tensor))
        assert table is not None
        if float((tensor - table).abs().max()) > POSITION_LIMIT:
            raise CheckpointError(f"{paths[name]}: {name} does not hold Marian's sinusoids.")
        table.copy_(tensor)
