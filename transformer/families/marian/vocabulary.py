"""The vocabulary of a Marian model: two sentencepiece models that cut text, and JSON that numbers the pieces.

Texts are cut exactly as the reference's MarianTokenizer cuts them, the odd corners included: `</s>`, `<unk>`
and `<pad>` in a text become the special ids, and `>>fra<<` is a piece of its own only where a text begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sentencepiece

from transformer.storage.files import CheckpointError, read_json
from transformer.text.vocabulary import EOS, PAD, UNK, without_surrogates

SOURCE_FILE, TARGET_FILE = "source.spm", "target.spm"
VOCABULARY_FILE, TARGET_VOCABULARY_FILE = "vocab.json", "target_vocab.json"
SETTINGS_FILE = "tokenizer_config.json"
MAX_SENTENCEPIECE_BYTES = 16 * 2**20
"""An OPUS-MT model's file has less than one MiB; each byte of a file may cost some 30 in memory."""

_SPECIAL = re.compile("|".join(f"({re.escape(piece)})" for piece in (EOS, UNK, PAD)))
_LANGUAGE = re.compile(r">>.*?<<", re.DOTALL)
_LANGUAGE_PIECE = re.compile(r">>[^\s<>]+<<")


class PieceTable:
    """Pieces and their numbers.

    Attributes:
        ids: The number of each piece.
        pieces: The piece of each number; a number without one is called `<unused 7>`.

    Args:
        ids: The numbers, each below ``size``.
        size: How many numbers the model has.
    """

    def __init__(self, ids: dict[str, int], size: int) -> None:
        self.ids = ids
        names = dict.fromkeys(range(size), "") | {number: piece for piece, number in ids.items()}
        self.pieces = tuple(names[number] or f"<unused {number}>" for number in range(size))

    def number(self, piece: str) -> int:
        """The piece's number, or that of `<unk>`."""
        return self.ids.get(piece, self.ids[UNK])

    @property
    def languages(self) -> tuple[str, ...]:
        """Pieces such as `>>fra<<`, in the order of their numbers."""
        found = filter(_LANGUAGE_PIECE.fullmatch, self.ids)
        return tuple(sorted(found, key=lambda piece: self.ids[piece]))


class MarianVocabulary:
    """Cuts source and target texts, each with its own sentencepiece model, and numbers the pieces.

    Args:
        source_model: Bytes of `source.spm`.
        target_model: Bytes of `target.spm`.
        source: Numbers of the source pieces.
        target: Numbers of the target pieces; the same table in most models.

    Raises:
        CheckpointError: A sentencepiece model is damaged, or a table lacks `</s>`, `<unk>` or `<pad>`.
    """

    def __init__(
        self, source_model: bytes, target_model: bytes, source: PieceTable, target: PieceTable
    ) -> None:
        self._source_processor = _processor(source_model, SOURCE_FILE)
        self._target_processor = _processor(target_model, TARGET_FILE)
        self.source, self.target = source, target

    @property
    def vocab_size(self) -> int:
        """Number of source pieces."""
        return len(self.source.pieces)

    @property
    def target_size(self) -> int:
        """Number of target pieces."""
        return len(self.target.pieces)

    def read(self, text: str) -> str:
        """The text itself (sentencepiece normalises it), without lone surrogates."""
        return without_surrogates(text)

    def encode(self, text: str) -> list[int]:
        """A source text as ids, without `</s>` at the end."""
        return [self.source.number(piece) for piece in _cut(text, self._source_processor)]

    def encode_target(self, text: str) -> list[int]:
        """A target text as ids, without `</s>` at the end."""
        return [self.target.number(piece) for piece in _cut(text, self._target_processor)]

    def decode(self, ids: Iterable[int]) -> str:
        """Target ids as text; `</s>`, `<unk>` and `<pad>` are left out."""
        special = {self.target.ids.get(piece) for piece in (EOS, UNK, PAD)}
        pieces = [self.target.pieces[number] for number in ids if number not in special]
        return str(self._target_processor.DecodePieces(pieces)).replace("▁", " ").strip()

    def source_pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of source ids, `▁` kept."""
        return tuple(self.source.pieces[number] for number in ids)

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of target ids, `▁` kept."""
        return tuple(self.target.pieces[number] for number in ids)


def _cut(text: str, processor: Any) -> list[str]:
    """Pieces of a text: special pieces as they stand, the rest by sentencepiece."""
    pieces: list[str] = []
    for part in filter(None, _SPECIAL.split(text)):
        if _SPECIAL.fullmatch(part):
            pieces.append(part)
            continue
        language = _LANGUAGE.match(part)
        if language:
            pieces.append(language[0])
        pieces += processor.EncodeAsPieces(part[language.end() if language else 0 :])
    return pieces


def _processor(model: bytes, name: str) -> Any:
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        n_pieces = processor.get_piece_size() if model else 0
    except (RuntimeError, TypeError) as error:
        raise CheckpointError(f"{name} is damaged or is no sentencepiece model.") from error
    if n_pieces == 0:
        raise CheckpointError(f"{name} is empty or is no sentencepiece model.")
    return processor


def read_vocabulary(directory: Path, source_size: int, target_size: int, separate: bool) -> MarianVocabulary:
    """Reads the vocabulary files of a model directory.

    Args:
        directory: The model's.
        source_size: Number of source pieces that the model has.
        target_size: The same for the target.
        separate: Whether source and target have embeddings of their own.

    Raises:
        CheckpointError: A file is missing, damaged, too large, or numbers pieces that the model lacks.
    """
    settings = read_json(directory / SETTINGS_FILE) if (directory / SETTINGS_FILE).exists() else {}
    own_target = settings.get("separate_vocabs", False)
    if own_target and not separate:
        raise CheckpointError(
            f"{directory / SETTINGS_FILE} asks for two vocabularies, but config.json for one embedding "
            "table; the files belong to different models."
        )
    source = _read_table(directory / VOCABULARY_FILE, source_size)
    target = source
    if own_target:
        target = _read_table(directory / TARGET_VOCABULARY_FILE, target_size)
    elif target_size != source_size:
        target = _read_table(directory / VOCABULARY_FILE, target_size)
    source_model, target_model = (_read_model(directory / name) for name in (SOURCE_FILE, TARGET_FILE))
    return MarianVocabulary(source_model, target_model, source, target)


def _read_model(path: Path) -> bytes:
    if not path.is_file():
        raise CheckpointError(f"{path.parent} has no {path.name}, so it is not a complete model directory.")
    if path.stat().st_size > MAX_SENTENCEPIECE_BYTES:
        raise CheckpointError(f"{path} is larger than 16 MiB, so it is no vocabulary of a translation model.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error


def _read_table(path: Path, size: int) -> PieceTable:
    values = read_json(path)
    numbers = list(values.values())
    if not all(type(number) is int and 0 <= number < size for number in numbers):
        raise CheckpointError(
            f"{path} has numbers that are not from 0 to {size - 1:,}, the pieces that config.json promises; "
            "the files belong to different models."
        )
    if len(set(numbers)) != len(numbers):
        raise CheckpointError(f"{path} gives two pieces the same number.")
    missing = [piece for piece in (EOS, UNK, PAD) if piece not in values]
    if missing:
        raise CheckpointError(f"{path} has no piece {missing[0]}, so it is no vocabulary of a Marian model.")
    return PieceTable(values, size)
