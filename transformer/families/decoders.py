"""Opens a decoder of a family."""

from __future__ import annotations

from pathlib import Path

from transformer.families.decoder import OUTPUT, DecoderFamily
from transformer.families.opening import (
    check_stored,
    described,
    names_of,
    read_model,
    without_prefix,
)
from transformer.families.rules import search_rules
from transformer.families.written import chat_template, read_vocabulary
from transformer.storage.description import read_card, read_heads
from transformer.storage.directory import Checkpoint

HEAD = f"{OUTPUT}.weight"
"""Our name of the output projection that is no table of embeddings."""


def open_decoder(family: DecoderFamily, directory: Path) -> Checkpoint:
    """Reads a model directory in the format of transformers and the Hub.

    CheckpointError if a file is missing, damaged, of another model, needs an unsupported feature,
    or does not fit into memory.
    """
    values, config = described(family, directory)
    stored = without_prefix(family.prefix, directory)
    sources = family.sources(config)
    if config.tied_embeddings:
        head = sources.pop(HEAD)
        stored.pop(head.name, None)  # the same numbers once more, which no model reads
    unread = set(filter(family.unread.fullmatch, stored))
    names = names_of(sources)
    check_stored(directory, values, config, names, stored=stored, unread=unread)
    vocabulary, config = read_vocabulary(family, directory, config)
    rules, notes = search_rules(directory, values, config, config.eos_id)
    heads, damaged = read_heads(directory, config)
    return Checkpoint(
        config=config,
        model=read_model(directory, config, sources, stored),
        tokenizer=vocabulary,
        heads=heads,
        card=read_card(directory),
        rules=rules,
        notes=(*notes, *damaged),
        chat_template=chat_template(directory),
    )
