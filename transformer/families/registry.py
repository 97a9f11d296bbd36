"""The formats of models that can be opened; nothing else asks of which a model is. No PyTorch at
import."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.config import ModelConfig
from transformer.families import pieces
from transformer.families.bart import BART, MBART
from transformer.families.decoder import DecoderFamily
from transformer.families.family import GENERATION_FILE, Family
from transformer.families.gpt2 import GPT2
from transformer.families.llama import LLAMA
from transformer.families.m2m import M2M100
from transformer.families.marian import MARIAN
from transformer.families.neox import NEOX
from transformer.families.opt import OPT
from transformer.families.t5 import T5
from transformer.storage.description import (
    CARD_FILE,
    CONFIG_FILE,
    HEADS_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    Description,
    read_config,
    read_heads,
)
from transformer.storage.files import MAX_SHARDS, PYTORCH, SAFETENSORS, read_json
from transformer.text.kinds import listed

if TYPE_CHECKING:
    from transformer.storage.directory import Checkpoint

FAMILIES: tuple[Family, ...] = (MARIAN, T5, M2M100, MBART, BART)
DECODERS: tuple[DecoderFamily, ...] = (GPT2, LLAMA, NEOX, OPT)
"""Whatever is of none of them is taken for a model that this package has written."""
_EVERY: tuple[Family | DecoderFamily, ...] = (*FAMILIES, *DECODERS)
KNOWN = listed(family.name for family in _EVERY)
"""What the families are called: "A, B and C"."""
WELCOME = CARD_FILE, HEADS_FILE
GGUF_SUFFIX = ".gguf"
_BESIDE = (
    "vocab.json",
    "target_vocab.json",
    pieces.SETTINGS_FILE,
    pieces.ADDED_FILE,
    GENERATION_FILE,
    "chat_template.jinja",
)
"""Files that a published model may have besides."""


def family_of(path: str | Path) -> Family | DecoderFamily | None:
    """The family of a directory; None for our own format."""
    file = Path(path) / CONFIG_FILE
    kind = read_json(file).get("model_type") if file.is_file() else None
    return next((family for family in _EVERY if kind in family.types), None)


def is_model(path: Path) -> bool:
    """Whether a path is a file that is a model by itself, or a directory with a config."""
    return is_gguf(path) or (path / CONFIG_FILE).is_file()


def is_gguf(path: Path) -> bool:
    """Whether a path is a file of llama.cpp's kind."""
    return path.suffix == GGUF_SUFFIX and path.is_file()


def config_in(path: Path) -> ModelConfig:
    """The config of a model, read without its weights; CheckpointError if the package cannot open
    it."""
    if is_gguf(path):
        from transformer.families.gguf import config_of

        return config_of(path)
    family = family_of(path)
    file = path / CONFIG_FILE
    return read_config(path) if family is None else family.config(read_json(file), file)


def described(path: Path) -> Description | None:
    """Description from the files beside the weights; None if only the opened model knows."""
    if is_gguf(path) or family_of(path) is not None:
        return None
    config = read_config(path)
    return Description(config, read_heads(path, config)[0])


def load(path: Path) -> Checkpoint:
    """Opens a model; CheckpointError if a file is missing, damaged, another model's, or
    unsupported."""
    if is_gguf(path):
        from transformer.families.gguf import open_gguf

        return open_gguf(path)
    if (family := family_of(path)) is None:
        from transformer.storage.directory import load_checkpoint

        return load_checkpoint(path)
    if isinstance(family, DecoderFamily):
        from transformer.families.decoders import open_decoder

        return open_decoder(family, path)
    from transformer.families.weights import open_model

    return open_model(family, path)


def needed_files(names: Collection[str]) -> tuple[list[str], list[str]]:
    """Of the files of a model on the Hub: those needed besides weights, with those that are
    welcome; and the files of weights, safetensors before PyTorch, one file before shards, empty if
    there are none.

    The first list may name files that the model lacks.
    """
    family = next(
        (family for family in FAMILIES if {CONFIG_FILE, family.files[0]} <= set(names)), None
    )
    if family is None and not {CONFIG_FILE, pieces.WHOLE_FILE} <= set(names):
        welcome = [name for name in (*WELCOME, *_BESIDE) if name in names]
        return [CONFIG_FILE, TOKENIZER_FILE, *welcome], _weights(names) or [WEIGHTS_FILE]
    required = family.files if family else (pieces.WHOLE_FILE,)
    whole = (pieces.WHOLE_FILE,) if family is BART else ()
    welcome = [name for name in (*WELCOME, *whole, *_BESIDE) if name in names]
    return list(dict.fromkeys([CONFIG_FILE, *required, *welcome])), _weights(names)


def _weights(names: Collection[str]) -> list[str]:
    for name in (SAFETENSORS, PYTORCH):
        stem, suffix = name.split(".")
        index = f"{name}.index.json"
        shard = re.compile(rf"{stem}-\d{{5}}-of-\d{{5}}\.{suffix}")
        if name in names:
            return [name]
        if index in names:
            shards = sorted(filter(shard.fullmatch, names))
            return [index, *shards] if 0 < len(shards) <= MAX_SHARDS else []
    return []
