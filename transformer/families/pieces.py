"""The pieces of published vocabularies: a sentencepiece model that splits text, and a table of their ids.

Special pieces stay whole wherever they stand in a text, as the libraries of these models read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import sentencepiece

from transformer.config import TransformerConfig
from transformer.storage.files import CheckpointError, check_vocabulary
from transformer.text import typed
from transformer.text.typed import PiecedText, without_surrogates
from transformer.text.words import EOS, PAD, UNK


def _shown(piece: str) -> str:
    return piece if piece.isascii() else without_surrogates(piece)


class PieceIds:
    """Maps pieces to ids and back."""

    def __init__(self, ids: dict[str, int], size: int, shown: Callable[[str], str] = _shown) -> None:
        self.ids = ids
        names = dict.fromkeys(range(size), "") | {number: piece for piece, number in ids.items()}
        # the piece of each id, as a page can show it
        self.pieces = tuple(shown(names[number]) or f"<unused {number}>" for number in range(size))

    def number(self, piece: str) -> int:
        """The id of the piece, or the id of `<unk>` if the table lacks the piece."""
        return self.ids.get(piece, self.ids[UNK])


def no_lead(text: str) -> int:
    """No text begins with a piece of its own."""
    return 0


class Splitter:
    """Splits texts into pieces and looks their ids up. CheckpointError if the model is damaged."""

    def __init__(
        self,
        model: bytes,  # of the sentencepiece model
        name: str,  # of its file
        table: PieceIds,  # ids of the pieces
        special: Collection[str] = (EOS, UNK, PAD),  # pieces that stay whole, and that no text is written of
        lead: Callable[[str], int] = no_lead,  # how many characters at the start of a text are one piece
    ) -> None:
        self._processor = processor(model, name)
        self.table, self._special, self._lead = table, frozenset(special), lead

    @cached_property
    def _parts(self) -> re.Pattern[str]:
        longest = sorted(self._special, key=lambda piece: (-len(piece), piece))
        return re.compile(f"({'|'.join(map(re.escape, longest))})")

    def split(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Each piece of a text, where it begins, and where it ends."""
        end = 0
        for part in filter(None, self._parts.split(text)):
            begin, end = end, end + len(part)
            if part in self._special:
                yield part, begin, end
                continue
            if lead := self._lead(part):
                yield part[:lead], begin, begin + lead
                begin += lead
            found = self._processor.EncodeAsOffsetMapping(text[begin:end])
            for piece, (first, last) in zip(found["pieces"], found["offsets"], strict=True):
                yield piece, begin + first, begin + last

    def encode(self, text: str) -> list[int]:
        """The ids of a text that has been read, without `</s>` at the end."""
        return [self.table.number(piece) for piece, *_ in self.split(text)]

    def cut(self, text: str) -> PiecedText:
        """Reads a text as it was typed, and splits it; without `</s>` at the end."""
        table = self.table

        def lacks(character: str) -> bool:
            return any(piece not in table.ids for piece, *_ in self.split(character))

        reading = typed.read(text, lacks)
        found = list(self.split(reading.text))
        pieces, ids = [piece for piece, *_ in found], [table.number(piece) for piece, *_ in found]
        return typed.cut(reading, ids, pieces, [(first, last) for _, first, last in found], table.ids[UNK])

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; special pieces are left out."""
        pieces = (self.table.pieces[number] for number in ids)
        text = self._processor.DecodePieces([piece for piece in pieces if piece not in self._special])
        return str(text).replace("▁", " ").strip()


class PublishedVocabulary:
    """A vocabulary that splits source and target texts, each with its own splitter, or both with one."""

    def __init__(self, source: Splitter, target: Splitter) -> None:
        self._source, self._target = source, target
        self.source, self.target = source.table, target.table

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

    def cut(self, text: str) -> PiecedText:
        """Reads a source text as it was typed, and splits it; without `</s>` at the end."""
        return self._source.cut(text)

    def cut_target(self, text: str) -> PiecedText:
        """Reads a target text as it was typed, and splits it; without `</s>` at the end."""
        return self._target.cut(text)

    def encode(self, text: str) -> list[int]:
        """The ids of a source text that has been read, without `</s>` at the end."""
        return self._source.encode(text)

    def encode_target(self, text: str) -> list[int]:
        """The ids of a target text that has been read, without `</s>` at the end."""
        return self._target.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of target ids; special pieces are left out."""
        return self._target.decode(ids)

    def source_pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of source ids, with `▁` kept."""
        return tuple(self.source.pieces[number] for number in ids)

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of target ids, with `▁` kept."""
        return tuple(self.target.pieces[number] for number in ids)


def check_ids(directory: Path, config: TransformerConfig, vocabulary: PublishedVocabulary) -> None:
    """CheckpointError if a config and a vocabulary number the special pieces differently."""
    for piece, number in ((EOS, config.eos_id), (PAD, config.pad_id), (UNK, config.unk_id)):
        if vocabulary.source.ids[piece] != number:
            raise CheckpointError(
                f"config.json in {directory} gives {piece} the id {number}, but the vocabulary has "
                f"{vocabulary.source.ids[piece]}; the files belong to different models."
            )


def processor(model: bytes, name: str) -> Any:
    """A sentencepiece model; CheckpointError if it is damaged or empty."""
    try:
        found = sentencepiece.SentencePieceProcessor(model_proto=model)
        n_pieces = found.get_piece_size() if model else 0
        found.IdToPiece(list(range(n_pieces)))  # each is UTF-8
    except (RuntimeError, TypeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{name} is damaged or is not a sentencepiece model.") from error
    if n_pieces == 0:
        raise CheckpointError(f"{name} is empty or is not a sentencepiece model.")
    return found


def read_model(path: Path) -> bytes:
    """The bytes of a vocabulary; CheckpointError if there is none, or it is too large."""
    if not path.is_file():
        raise CheckpointError(f"{path.parent} has no {path.name}, so it is not a complete model directory.")
    check_vocabulary(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
