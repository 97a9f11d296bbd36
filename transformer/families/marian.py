"""Marian: the family that OPUS-MT models belong to.

A Marian model is the paper's post-norm Transformer with a few other choices, each a value of the
config: the layout of the sinusoids, scaled embeddings, the activation, the start token (``<pad>``),
a bias on the logits, one embedding table or several, and language pieces.

Texts are split as MarianTokenizer splits them, with its remarks: `</s>`, `<unk>` and `<pad>` in a
text are the special ids, and `>>fra<<` is a single piece only at the start of a text. JSON has the
ids of the pieces of two sentencepiece models.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from transformer.config import TransformerConfig
from transformer.families.bart import fairseq
from transformer.families.family import Json, config_of
from transformer.families.pieces import (
    SETTINGS_FILE,
    SentencePieces,
    check_pieces,
    languages_of,
    read_model,
    settings_of,
)
from transformer.storage.files import CheckpointError, read_json
from transformer.text.tokenizer import Vocabulary
from transformer.text.words import EOS, PAD, UNK

FIELDS: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocab_size", 58_101),
    "shared_embeddings": ("share_encoder_decoder_embeddings", True),
    "tied_embeddings": ("tie_word_embeddings", True),
    "scaled_embeddings": ("scale_embedding", False),
    "pad_id": ("pad_token_id", 58_100),
    "bos_id": ("decoder_start_token_id", 58_100),
    "eos_id": ("eos_token_id", 0),
}
"""Maps our field to their name and the reference's default, used if config.json lacks the entry."""
REQUIRED: dict[str, object] = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
    "is_encoder_decoder": True,
}
"""Entries of older configs; any other value would mean another architecture."""


def config(values: Json, path: Path) -> TransformerConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is out of range or
    unsupported."""
    choices: Json = {"norm": "post", "sine_layout": "halves", "unk_id": 0}
    if not values.get("share_encoder_decoder_embeddings", True):
        choices["target_vocab_size"] = values.get("decoder_vocab_size") or None
    return config_of(
        values, path, fields=FIELDS, required=REQUIRED, activation="gelu", choices=choices
    )


SOURCE_FILE, TARGET_FILE = "source.spm", "target.spm"
VOCABULARY_FILE, TARGET_VOCABULARY_FILE = "vocab.json", "target_vocab.json"
_LEAD = r">>.*?<<"


def vocabulary(directory: Path, config: TransformerConfig) -> tuple[Vocabulary, TransformerConfig]:
    """The vocabulary of a directory; CheckpointError if a file is missing, damaged, or another
    model's.

    Only the vocabulary knows the ids of padding and of the unknown piece, and the languages.
    """
    separate = settings_of(directory).get("separate_vocabs", False)
    if separate and config.shared_embeddings:
        raise CheckpointError(
            f"{directory / SETTINGS_FILE} asks for two vocabularies, but config.json asks for one "
            "embedding table; the files belong to different models."
        )
    tables = VOCABULARY_FILE, TARGET_VOCABULARY_FILE if separate else VOCABULARY_FILE
    sizes = config.vocab_size, config.n_target_pieces
    one = not separate and sizes[0] == sizes[1]
    first = _ids(directory / tables[0], sizes[0])
    source = _pieces(directory / SOURCE_FILE, first, sizes[0])
    if one:
        target = source.split_by(directory / TARGET_FILE)
    else:
        second = _ids(directory / tables[1], sizes[1])
        target = _pieces(directory / TARGET_FILE, second, sizes[1])
    into = languages_of(source, ">>") if one else ()
    found = Vocabulary(source, target, into)
    pad = source.ids[PAD]
    unknown = source.ids[UNK]
    return found, replace(config, pad_id=pad, unk_id=unknown, languages=" ".join(into))


def _pieces(path: Path, ids: dict[str, int], size: int) -> SentencePieces:
    processor, _ = read_model(path)
    special = (EOS, UNK, PAD)
    return SentencePieces(processor, path.parent, ids, size, special, lead=_LEAD)


def _ids(path: Path, size: int) -> dict[str, int]:
    ids = read_json(path)
    numbers = list(ids.values())
    if not all(type(number) is int and 0 <= number < size for number in numbers):
        raise CheckpointError(
            f"{path} has numbers that are not from 0 to {size - 1:,}, the ids that config.json "
            "allows; the files belong to different models."
        )
    if len(set(numbers)) != len(numbers):
        raise CheckpointError(f"{path} gives the same number to two pieces.")
    check_pieces(path, (EOS, UNK, PAD), ids, size)
    return ids


MARIAN = fairseq(
    name="Marian (OPUS-MT)",
    types=("marian",),
    files=(SOURCE_FILE, TARGET_FILE, VOCABULARY_FILE),
    tokenizers=("MarianTokenizer",),
    config=config,
    vocabulary=vocabulary,
)
