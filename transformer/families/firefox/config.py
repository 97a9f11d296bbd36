"""The settings inside a Firefox model and its vocabularies, converted to our config. No PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from transformer.families.firefox.folder import MODEL, only, unpacked
from transformer.families.firefox.items import Items
from transformer.model.config import TransformerConfig
from transformer.storage.description import check_parameters
from transformer.storage.files import CheckpointError, check_vocabulary
from transformer.text.typed import PiecedText
from transformer.text.vocabulary import SpecialIds, Tokenizer, TokenizerError

SETTINGS = "special:model.yml"
MAX_POSITIONS = 2048
_SETTING = re.compile(r"^([\w-]+):[ \t]*(.*?)[ \t]*$", re.MULTILINE)

NORM_EPSILON = 1e-6
"""What Marian's LayerNorm adds to the variance."""
SIZES = {
    "d_model": "dim-emb",
    "d_ff": "transformer-dim-ffn",
    "n_heads": "transformer-heads",
    "n_encoder_layers": "enc-depth",
    "n_decoder_layers": "dec-depth",
}
"""Maps our size to its name in the settings."""
REQUIRED = {
    "type": "transformer",
    "transformer-preprocess": '""',
    "transformer-postprocess": "dan",
    "transformer-postprocess-top": '""',
    "transformer-decoder-autoreg": "rnn",
    "dec-cell": "ssru",
    "transformer-ffn-depth": "2",
    "transformer-no-projection": "false",
    "transformer-train-position-embeddings": "false",
    "transformer-tied-layers": "[]",
    "layer-normalization": "false",
}
"""Settings of the architecture; any other value would mean another one."""
TABLES = SHARED_TABLE, SOURCE_TABLE, TARGET_TABLE = "Wemb", "encoder_Wemb", "decoder_Wemb"
"""The embeddings of pieces: one table for all, or one for each side."""
OUTPUT_TABLE, OUTPUT_BIAS = "decoder_ff_logit_out_W", "decoder_ff_logit_out_b"
"""The output's, if it is not an embedding table, and what is added to the logits."""


@dataclass(frozen=True)
class PairedVocabulary:
    """A vocabulary of each language; both have the same ids for the end and for what is unknown."""

    source: Tokenizer
    target: Tokenizer

    @property
    def special(self) -> SpecialIds:
        return self.source.special._replace(bos=self.target.special.bos)

    @property
    def vocab_size(self) -> int:
        return self.source.vocab_size

    @property
    def target_size(self) -> int:
        return self.target.vocab_size

    def read(self, text: str) -> str:
        return self.source.read(text)

    def cut(self, text: str) -> PiecedText:
        return self.source.cut(text)

    def cut_target(self, text: str) -> PiecedText:
        return self.target.cut(text)

    def encode(self, text: str) -> list[int]:
        return self.source.encode(text)

    def encode_target(self, text: str) -> list[int]:
        return self.target.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        return self.target.decode(ids)

    def source_pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        return self.source.pieces(ids)

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        return self.target.pieces(ids)


def read_vocabulary(directory: Path) -> Tokenizer | PairedVocabulary:
    """Pieces of both languages together, or of each; CheckpointError if a file is damaged or does not fit."""
    if not any(directory.glob("srcvocab.*.spm")):
        return _read_tokenizer(only(directory, "vocab.*.spm"))
    source, target = (_read_tokenizer(only(directory, f"{side}vocab.*.spm")) for side in ("src", "trg"))
    if source.special[2:] != target.special[2:]:
        raise CheckpointError(
            f"{directory} has two vocabularies that give </s> or <unk> different ids; only those with the "
            "same ids are supported."
        )
    return PairedVocabulary(source, target)


def _read_tokenizer(path: Path) -> Tokenizer:
    check_vocabulary(path)
    try:
        return Tokenizer.load(path)
    except TokenizerError as error:
        raise CheckpointError(f"{path}: {error}") from error


def firefox_config(items: Items, tokenizer: Tokenizer | PairedVocabulary) -> TransformerConfig:
    """The settings inside a model as our config; CheckpointError if one is missing or unsupported."""
    settings = dict(_SETTING.findall(items.text(SETTINGS)))
    for name, required in REQUIRED.items():
        if settings.get(name, required) != required:
            raise CheckpointError(
                f"{items.path} says {name}: {settings[name]:.80}; only {required} is supported."
            )
    try:
        sizes = {ours: int(settings[theirs]) for ours, theirs in SIZES.items()}
        names = ("pad_id", "bos_id", "eos_id", "unk_id")
        special = dict(zip(names, tokenizer.special, strict=True))
        shared, own = SHARED_TABLE in items.found, tokenizer.target_size
        found = TransformerConfig.from_dict(
            {
                **sizes,
                **special,
                "vocab_size": tokenizer.vocab_size,
                "target_vocab_size": None if own == tokenizer.vocab_size else own,
                "activation": settings.get("transformer-ffn-activation", "relu"),
                "norm": "post",
                "norm_epsilon": NORM_EPSILON,
                "sine_layout": "inclusive",
                "decoder_unit": "ssru",
                "dropout": 0.0,
                "output_bias": OUTPUT_BIAS in items.found,
                "max_positions": MAX_POSITIONS,
                "shared_embeddings": shared,
                "tied_embeddings": shared or OUTPUT_TABLE not in items.found,
            }
        )
        check_parameters(items.path, found)
        return found
    except KeyError as error:
        raise CheckpointError(f"{items.path} does not say its {error.args[0]}.") from error
    except ValueError as error:
        raise CheckpointError(f"{items.path} describes no usable model: {error}") from error


def read_firefox_config(path: Path) -> TransformerConfig:
    """The config of a folder or an archive, without its weights; CheckpointError if it cannot be opened."""
    with unpacked(path) as directory:
        return firefox_config(Items(only(directory, MODEL)), read_vocabulary(directory))
