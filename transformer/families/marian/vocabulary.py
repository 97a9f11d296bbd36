"""The vocabulary of a Marian model: two sentencepiece models that split text, and JSON with the piece ids.

Texts are split exactly as the reference's MarianTokenizer does it, including its oddities: `</s>`, `<unk>`
and `<pad>` in a text become the special ids, and `>>fra<<` is a single piece only at the start of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import sentencepiece

from transformer.storage.files import CheckpointError, check_vocabulary, read_json
from transformer.text import typed
from transformer.text.typed import Cut, without_surrogates
from transformer.text.words import EOS, PAD, UNK

SOURCE_FILE, TARGET_FILE = "source.spm", "target.spm"
VOCABULARY_FILE, TARGET_VOCABULARY_FILE = "vocab.json", "target_vocab.json"
SETTINGS_FILE = "tokenizer_config.json"

_SPECIAL = re.compile("|".join(f"({re.escape(piece)})" for piece in (EOS, UNK, PAD)))
_LANGUAGE = re.compile(r">>.*?<<", re.DOTALL)
_LANGUAGE_PIECE = re.compile(r">>[^\s<>]+<<")


def _shown(piece: str) -> str:
    return piece if piece.isascii() else without_surrogates(piece)


class PieceTable:
    """Maps pieces to ids and back."""

    def __init__(self, ids: dict[str, int], size: int) -> None:
        self.ids = ids
        names = dict.fromkeys(range(size), "") | {number: piece for piece, number in ids.items()}
        # the piece of each id, as a page can show it
        self.pieces = tuple(_shown(names[number]) or f"<unused {number}>" for number in range(size))

    def number(self, piece: str) -> int:
        """The id of the piece, or the id of `<unk>` if the table lacks the piece."""
        return self.ids.get(piece, self.ids[UNK])

    @property
    def languages(self) -> tuple[str, ...]:
        """Language pieces such as `>>fra<<`, ordered by id."""
        found = filter(_LANGUAGE_PIECE.fullmatch, self.ids)
        return tuple(sorted(found, key=lambda piece: self.ids[piece]))


class MarianVocabulary:
    """Splits source and target texts, each with its own sentencepiece model, and looks up the piece ids.

    CheckpointError if a sentencepiece model is damaged, or a table lacks `</s>`, `<unk>` or `<pad>`.
    """

    def __init__(
        self,
        source_model: bytes,  # bytes of `source.spm`
        target_model: bytes,  # bytes of `target.spm`
        source: PieceTable,  # ids of the source pieces
        target: PieceTable,  # ids of the target pieces; the same table in most models
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
        """The text cleaned, with plain characters for typographic ones that have no piece."""
        return self.cut(text).read.text

    def cut(self, text: str) -> Cut:
        """Reads a source text as it was typed, and splits it; without `</s>` at the end."""
        return _cut(text, self._source_processor, self.source)

    def cut_target(self, text: str) -> Cut:
        """Reads a target text as it was typed, and splits it; without `</s>` at the end."""
        return _cut(text, self._target_processor, self.target)

    def encode(self, text: str) -> list[int]:
        """The ids of a source text that has been read, without `</s>` at the end."""
        return [self.source.number(piece) for piece, *_ in _split(text, self._source_processor)]

    def encode_target(self, text: str) -> list[int]:
        """The ids of a target text that has been read, without `</s>` at the end."""
        return [self.target.number(piece) for piece, *_ in _split(text, self._target_processor)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of target ids; `</s>`, `<unk>` and `<pad>` are left out."""
        special = {self.target.ids.get(piece) for piece in (EOS, UNK, PAD)}
        pieces = [self.target.pieces[number] for number in ids if number not in special]
        return str(self._target_processor.DecodePieces(pieces)).replace("▁", " ").strip()

    def source_pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of source ids, with `▁` kept."""
        return tuple(self.source.pieces[number] for number in ids)

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of target ids, with `▁` kept."""
        return tuple(self.target.pieces[number] for number in ids)


def _cut(text: str, processor: Any, table: PieceTable) -> Cut:
    """Reads and splits a text; its pieces are known by a table."""

    def lacks(character: str) -> bool:
        return any(piece not in table.ids for piece, *_ in _split(character, processor))

    reading = typed.read(text, lacks)
    found = list(_split(reading.text, processor))
    pieces, ids = [piece for piece, *_ in found], [table.number(piece) for piece, *_ in found]
    return typed.cut(reading, ids, pieces, [(first, last) for _, first, last in found], table.ids[UNK])


def _split(text: str, processor: Any) -> Iterator[tuple[str, int, int]]:
    """Each piece of a text, where it begins, and where it ends.

    Special pieces stay whole, sentencepiece splits the rest.
    """
    end = 0
    for part in filter(None, _SPECIAL.split(text)):
        begin, end = end, end + len(part)
        if _SPECIAL.fullmatch(part):
            yield part, begin, end
            continue
        if language := _LANGUAGE.match(part):
            yield language[0], begin, begin + language.end()
            begin += language.end()
        found = processor.EncodeAsOffsetMapping(text[begin:end])
        for piece, (first, last) in zip(found["pieces"], found["offsets"], strict=True):
            yield piece, begin + first, begin + last


def _processor(model: bytes, name: str) -> Any:
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        n_pieces = processor.get_piece_size() if model else 0
        processor.IdToPiece(list(range(n_pieces)))  # each is UTF-8
    except (RuntimeError, TypeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{name} is damaged or is not a sentencepiece model.") from error
    if n_pieces == 0:
        raise CheckpointError(f"{name} is empty or is not a sentencepiece model.")
    return processor


def read_vocabulary(directory: Path, source_size: int, target_size: int, separate: bool) -> MarianVocabulary:
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
    source_model, target_model = (_read_model(directory / name) for name in (SOURCE_FILE, TARGET_FILE))
    return MarianVocabulary(source_model, target_model, source, target)


def _read_model(path: Path) -> bytes:
    if not path.is_file():
        raise CheckpointError(f"{path.parent} has no {path.name}, so it is not a complete model directory.")
    check_vocabulary(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error


def _read_table(path: Path, size: int) -> PieceTable:
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
    return PieceTable(values, size)
