"""The vocabulary of a Marian model: two sentencepiece models that split text, and JSON with the piece ids.

Texts are split exactly as the reference's MarianTokenizer does it, including its oddities: `</s>`, `<unk>`
and `<pad>` in a text become the special ids, and `>>fra<<` is a single piece only at the start of a text.
"""

from __future__ import annotations

import re
from pathlib import Path

from transformer.families.pieces import PieceIds, PublishedVocabulary, Splitter, read_model
from transformer.storage.files import CheckpointError, read_json
from transformer.text.words import EOS, PAD, UNK

SOURCE_FILE, TARGET_FILE = "source.spm", "target.spm"
VOCABULARY_FILE, TARGET_VOCABULARY_FILE = "vocab.json", "target_vocab.json"
SETTINGS_FILE = "tokenizer_config.json"

_LANGUAGE = re.compile(r">>.*?<<", re.DOTALL)
_LANGUAGE_PIECE = re.compile(r">>[^\s<>]+<<")


def language_pieces(table: PieceIds) -> tuple[str, ...]:
    """Language pieces such as `>>fra<<`, ordered by id."""
    found = filter(_LANGUAGE_PIECE.fullmatch, table.ids)
    return tuple(sorted(found, key=lambda piece: table.ids[piece]))


def _language(text: str) -> int:
    """Characters of a language piece at the start of a text."""
    found = _LANGUAGE.match(text)
    return found.end() if found else 0


def read_vocabulary(
    directory: Path, source_size: int, target_size: int, separate: bool
) -> PublishedVocabulary:
    """Reads the vocabulary files of a model directory, of so many pieces, in one embedding table or two.

    CheckpointError if one is missing, damaged, too large, or has ids beyond the size of the model.
    """
    settings = read_json(directory / SETTINGS_FILE) if (directory / SETTINGS_FILE).exists() else {}
    own_target = settings.get("separate_vocabs", False)
    if own_target and not separate:
        raise CheckpointError(
            f"{directory / SETTINGS_FILE} asks for two vocabularies, but config.json asks for one "
            "embedding table; the files belong to different models."
        )
    source = _read_table(directory / VOCABULARY_FILE, source_size)
    target = source
    if own_target:
        target = _read_table(directory / TARGET_VOCABULARY_FILE, target_size)
    elif target_size != source_size:
        target = _read_table(directory / VOCABULARY_FILE, target_size)
    one, other = (
        Splitter(read_model(directory / name), name, table, lead=_language)
        for name, table in ((SOURCE_FILE, source), (TARGET_FILE, target))
    )
    return PublishedVocabulary(one, other)


def _read_table(path: Path, size: int) -> PieceIds:
    values = read_json(path)
    numbers = list(values.values())
    if not all(type(number) is int and 0 <= number < size for number in numbers):
        raise CheckpointError(
            f"{path} has numbers that are not from 0 to {size - 1:,}, the ids that config.json allows; "
            "the files belong to different models."
        )
    if len(set(numbers)) != len(numbers):
        raise CheckpointError(f"{path} gives the same number to two pieces.")
    missing = [piece for piece in (EOS, UNK, PAD) if piece not in values]
    if missing:
        raise CheckpointError(
            f"{path} has no piece {missing[0]}, so it is not the vocabulary of a Marian model."
        )
    return PieceIds(values, size)
