"""Opens an encoder alone of a family."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from transformer.families.alone import EMBEDDING, Source
from transformer.families.encoder import OTHER_TASKS, SEGMENTS, EncoderFamily, first_rows
from transformer.families.masked import read_vocabulary
from transformer.families.opening import (
    check_stored,
    described,
    names_of,
    read_model,
    without_prefix,
)
from transformer.families.weights import same
from transformer.storage.description import read_card, read_heads
from transformer.storage.directory import Checkpoint
from transformer.storage.tensors import StoredTensor

OUTPUT = "output.weight"
"""Our name of the output projection that is no table of embeddings."""
HEADS_ONLY = "This model has no output for masked words: it shows its heads, and predicts nothing."
_OLD_NORM = re.compile(r"(?<=LayerNorm\.)(gamma|beta)")
_NOW = {"gamma": "weight", "beta": "bias"}
"""How old files spell the parts of a norm."""


def open_encoder(family: EncoderFamily, directory: Path) -> Checkpoint:
    """Reads a model directory in the format of transformers and the Hub.

    CheckpointError if a file is missing, damaged, of another model, needs an unsupported feature,
    or does not fit into memory.
    """
    values, config = described(family, directory)
    stored = _as_spelled_now(without_prefix(family.prefix, directory))
    sources = family.sources(config)
    vocabulary, framed = read_vocabulary(family, directory, config)
    if framed.n_segments < config.n_segments:
        rows = first_rows(config.n_segments, framed.n_segments)
        sources[SEGMENTS] = replace(sources[SEGMENTS], layout=rows)
    config = framed
    unread = set(filter(family.unread.fullmatch, stored)) | family.head.names()
    if config.mask_id is None or not family.head.names() & stored.keys():
        config = replace(config, mask_id=None, output_transform=False, output_bias=False)
    else:
        sources |= family.head.sources(stored)
        tied = values.get("tie_word_embeddings") is not False
        if not _ties(stored, sources, family.head.table, tied):
            config = replace(config, tied_embeddings=False)
            sources[OUTPUT] = Source(family.head.table)
    names = names_of(sources)
    check_stored(directory, values, config, names, stored=stored, unread=unread)
    notes = _of_other_tasks(stored)
    if config.mask_id is None:
        notes = (HEADS_ONLY, *notes)
    heads, damaged = read_heads(directory, config)
    return Checkpoint(
        config=config,
        model=read_model(directory, config, sources, stored),
        tokenizer=vocabulary,
        heads=heads,
        card=read_card(directory),
        notes=(*notes, *damaged),
    )


def _as_spelled_now(stored: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Tensors by the names of present files."""
    return {
        _OLD_NORM.sub(lambda part: _NOW[part[0]], name): tensor for name, tensor in stored.items()
    }


def _ties(
    stored: Mapping[str, StoredTensor],
    sources: Mapping[str, Source],
    table: str,  # their name of the output projection
    tied: bool,  # what the config says
) -> bool:
    """Whether the output projection is the table of the pieces: files that hold it once more, with
    other numbers, mean these."""
    if table not in stored:
        return tied
    pieces = sources[f"{EMBEDDING}.weight"].name
    return pieces in stored and same(stored, pieces, table)


def _of_other_tasks(stored: Iterable[str]) -> tuple[str, ...]:
    """A note on what the files hold besides for another task, if they do."""
    name = next(filter(re.compile(OTHER_TASKS).match, stored), None)
    if name is None:
        return ()
    return (f"This model's files hold {name}, which this package does not compute.",)
