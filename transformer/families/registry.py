"""The formats of models that can be opened; nothing else asks of which a model is. No PyTorch at
import."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.config import ModelConfig
from transformer.families import pieces
from transformer.families.bart import BART, MBART, MERGES_FILE, PIECES_FILE
from transformer.families.bert import BERT, ELECTRA
from transformer.families.decoder import DecoderFamily
from transformer.families.distilbert import DISTILBERT
from transformer.families.encoder import EncoderFamily
from transformer.families.family import GENERATION_FILE, Family
from transformer.families.gpt2 import GPT2
from transformer.families.llama import LLAMA
from transformer.families.m2m import M2M100
from transformer.families.marian import MARIAN
from transformer.families.neox import NEOX
from transformer.families.opt import OPT
from transformer.families.roberta import ROBERTA
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
from transformer.storage.gguf import MAGIC
from transformer.text.kinds import listed

if TYPE_CHECKING:
    from transformer.storage.directory import Checkpoint

FAMILIES: tuple[Family, ...] = (MARIAN, T5, M2M100, MBART, BART)
DECODERS: tuple[DecoderFamily, ...] = (GPT2, LLAMA, NEOX, OPT)
ENCODERS: tuple[EncoderFamily, ...] = (BERT, DISTILBERT, ELECTRA, ROBERTA)
"""Whatever is of none of them is taken for a model that this package has written."""
AnyFamily = Family | DecoderFamily | EncoderFamily
_EVERY: tuple[AnyFamily, ...] = (*FAMILIES, *DECODERS, *ENCODERS)
KNOWN = listed(family.name for family in _EVERY)
"""What the families are called: "A, B and C"."""
WELCOME = CARD_FILE, HEADS_FILE
GGUF_SUFFIX = ".gguf"
ALSO_OF_ENCODERS = MERGES_FILE, PIECES_FILE
"""Files that translators and encoders alone have, these beside the ``tokenizer.json`` that tells
how they are read."""
_BESIDE = (
    "vocab.json",
    "target_vocab.json",
    pieces.SETTINGS_FILE,
    pieces.ADDED_FILE,
    GENERATION_FILE,
    "chat_template.jinja",
)
"""Files that a published model may have besides."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """How models of a kind lie on the disk, and what reads them."""

    name: str  # what people call its models
    config: Callable[[Path], ModelConfig]  # read without the weights
    architecture: Callable[[Path], str]  # what its files call the shape of the network
    opened: Callable[[Path], Checkpoint]
    # what the files beside the weights say; None: only the opened model knows
    described: Callable[[Path], Description] | None = None


def _open_own(path: Path) -> Checkpoint:
    from transformer.storage.directory import load_checkpoint

    return load_checkpoint(path)


def _describe_own(path: Path) -> Description:
    config = read_config(path)
    return Description(config, read_heads(path, config)[0])


OWN = Format(
    name="own",
    config=read_config,
    architecture=lambda path: type(read_config(path)).__name__.removesuffix("Config"),
    opened=_open_own,
    described=_describe_own,
)


def _gguf_config(path: Path) -> ModelConfig:
    from transformer.families.gguf import config_of

    return config_of(path)


def _gguf_architecture(path: Path) -> str:
    from transformer.families.gguf import architecture_of

    return architecture_of(path)


def _open_gguf(path: Path) -> Checkpoint:
    from transformer.families.gguf import open_gguf

    return open_gguf(path)


GGUF = Format(name="GGUF", config=_gguf_config, architecture=_gguf_architecture, opened=_open_gguf)


def _published(family: AnyFamily, opened: Callable[[Path], Checkpoint]) -> tuple[AnyFamily, Format]:
    """A family, and how its models lie in directories as transformers writes them."""

    def config(path: Path) -> ModelConfig:
        file = path / CONFIG_FILE
        return family.config(read_json(file), file)

    def architecture(path: Path) -> str:
        return str(read_json(path / CONFIG_FILE).get("model_type"))

    return family, Format(name=family.name, config=config, architecture=architecture, opened=opened)


def _translators(family: Family) -> tuple[AnyFamily, Format]:
    def opened(path: Path) -> Checkpoint:
        from transformer.families.weights import open_model

        return open_model(family, path)

    return _published(family, opened)


def _decoders(family: DecoderFamily) -> tuple[AnyFamily, Format]:
    def opened(path: Path) -> Checkpoint:
        from transformer.families.decoders import open_decoder

        return open_decoder(family, path)

    return _published(family, opened)


def _encoders(family: EncoderFamily) -> tuple[AnyFamily, Format]:
    def opened(path: Path) -> Checkpoint:
        from transformer.families.encoders import open_encoder

        return open_encoder(family, path)

    return _published(family, opened)


_PUBLISHED = (
    *map(_translators, FAMILIES),
    *map(_decoders, DECODERS),
    *map(_encoders, ENCODERS),
)


def family_of(path: str | Path) -> AnyFamily | None:
    """The family of a directory; None for our own format."""
    file = Path(path) / CONFIG_FILE
    kind = read_json(file).get("model_type") if file.is_file() else None
    return next((family for family in _EVERY if kind in family.types), None)


def format_of(path: Path) -> Format:
    """How a model lies on the disk; whatever is in no other way is taken for our own."""
    if is_gguf(path):
        return GGUF
    family = family_of(path)
    return next((form for known, form in _PUBLISHED if known is family), OWN)


def is_model(path: Path) -> bool:
    """Whether a path is a file that is a model by itself, or a directory with a config."""
    return is_gguf(path) or (path / CONFIG_FILE).is_file()


def is_gguf(path: Path) -> bool:
    """Whether a path is a file of llama.cpp's kind, by its name or by its first letters: what
    Ollama keeps has no suffix."""
    if not path.is_file():
        return False
    if path.suffix == GGUF_SUFFIX:
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def config_in(path: Path) -> ModelConfig:
    """The config of a model, read without its weights; CheckpointError if the package cannot open
    it."""
    return format_of(path).config(path)


def described(path: Path) -> Description | None:
    """Description from the files beside the weights; None if only the opened model knows."""
    describe = format_of(path).described
    return None if describe is None else describe(path)


def load(path: Path) -> Checkpoint:
    """Opens a model; CheckpointError if a file is missing, damaged, another model's, or
    unsupported."""
    return format_of(path).opened(path)


def needed_files(names: Collection[str]) -> tuple[list[str], list[str]]:
    """Of the files of a model on the Hub: those needed besides weights, with those that are
    welcome; and the files of weights, safetensors before PyTorch, one file before shards, empty if
    there are none.

    The first list may name files that the model lacks.
    """
    family = next(
        (family for family in FAMILIES if {CONFIG_FILE, family.files[0]} <= set(names)), None
    )
    published = CONFIG_FILE in names and not {pieces.WHOLE_FILE, pieces.WORDS_FILE}.isdisjoint(
        names
    )
    if family is None and not published:
        welcome = [name for name in (*WELCOME, *_BESIDE) if name in names]
        return [CONFIG_FILE, TOKENIZER_FILE, *welcome], _weights(names) or [WEIGHTS_FILE]
    required = _vocabulary_files(family, names)
    besides = [*WELCOME, *_BESIDE]
    if family is not None and family.files[0] in ALSO_OF_ENCODERS:
        besides.insert(len(WELCOME), pieces.WHOLE_FILE)
    welcome = [name for name in besides if name in names]
    return list(dict.fromkeys([CONFIG_FILE, *required, *welcome])), _weights(names)


def _vocabulary_files(family: Family | None, names: Collection[str]) -> tuple[str, ...]:
    """The files of a vocabulary that a model needs."""
    if family is not None:
        return family.files
    if pieces.WHOLE_FILE in names:
        return (pieces.WHOLE_FILE,)
    return (pieces.WORDS_FILE,)


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
