"""A joint sub-word vocabulary: sentencepiece unigram, trained by this package.

Pieces are not normalised or case-folded, and characters that never occurred in the training text are written
as UTF-8 bytes. So an encoded sentence always decodes to itself. ``read`` makes a text ready, see ``typed``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import sentencepiece

from transformer.text import typed
from transformer.text.brief import Brief
from transformer.text.typed import PiecedText
from transformer.text.words import EOS, NO_PIECE, UNK

PAD_ID, BOS_ID, EOS_ID, UNK_ID = 0, 1, 2, 3


_FEWEST = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


class SpecialIds(NamedTuple):
    """Ids of the pieces that no text contains; one past the last piece for a piece that does not exist."""

    pad: int = PAD_ID
    bos: int = BOS_ID
    eos: int = EOS_ID
    unk: int = UNK_ID


SPECIAL_IDS = SpecialIds()
"""Those of the vocabularies that this package trains."""


class TokenizerError(ValueError):
    """A tokenizer cannot be trained or loaded; the message says why and what to do."""


class Vocabulary(Protocol):
    """Interface of a translator's tokenizer. Source and target may have separate pieces."""

    @property
    def vocab_size(self) -> int:
        """Number of source pieces."""

    @property
    def target_size(self) -> int:
        """Number of target pieces."""

    def read(self, text: str) -> str:
        """A source text as the model reads it, before it is split into pieces."""

    def cut(self, text: str) -> PiecedText:
        """Reads a source text as it was typed, and splits it; without the end token."""

    def cut_target(self, text: str) -> PiecedText:
        """The same for a target text."""

    def encode(self, text: str) -> list[int]:
        """The ids of a source text that has been read, without the end token."""

    def encode_target(self, text: str) -> list[int]:
        """The ids of a target text that has been read, without the end token."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of target ids; special ids are left out."""

    def source_pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of source ids, with ``▁`` kept."""

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of target ids, with ``▁`` kept."""


class Tokenizer(Brief):
    """Converts text to pieces and ids, and back.

    Pieces keep sentencepiece's `▁` for a space. In vocabularies of this package, ids 0 to 3 are `<pad>`,
    `<s>`, `</s>` and `<unk>`. If a sentence contains the text `<s>`, ordinary pieces spell it, never the
    special id.

    Attributes:
        special: Ids of the special pieces.
    """

    TOLD = ("vocab_size",)

    def __init__(self, serialized: bytes) -> None:
        """Reads a sentencepiece model.

        Args:
            serialized: The bytes of a sentencepiece model file.

        Raises:
            TokenizerError: The bytes are not a sentencepiece model, or it has no `</s>` or no `<unk>`.
        """
        self._serialized = serialized
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=serialized)
            n_pieces = self._processor.get_piece_size() if serialized else 0
            self._processor.IdToPiece(list(range(n_pieces)))  # each is UTF-8
        except (RuntimeError, TypeError, UnicodeDecodeError) as error:
            raise TokenizerError("The tokenizer file is damaged or is not a sentencepiece model.") from error
        if n_pieces == 0:
            raise TokenizerError("The tokenizer file is empty or is not a sentencepiece model.")
        asked = (self._processor.pad_id, self._processor.bos_id, self._processor.eos_id)
        found = [id_() for id_ in (*asked, self._processor.unk_id)]
        if min(found[2:]) < 0:
            raise TokenizerError(f"The tokenizer has no {EOS} or no {UNK}, which this package needs.")
        self.special = SpecialIds(*(n_pieces if id_ < 0 else id_ for id_ in found))

    @classmethod
    def train(cls, sentences: Iterable[str], vocab_size: int, at_most: bool = False) -> Tokenizer:
        """Trains one joint vocabulary on sentences of both languages.

        Args:
            sentences: Plain sentences in both languages, mixed.
            vocab_size: Number of pieces, including the 4 special pieces and the 256 byte pieces.
            at_most: Whether a text that cannot give so many pieces gives as many as it can.

        Raises:
            TokenizerError: The vocabulary is too small or too large for this text.
        """
        texts, written = list(map(typed.clean, sentences)), io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=written,
                model_type="unigram",
                vocab_size=vocab_size,
                hard_vocab_limit=not at_most,
                character_coverage=1.0,
                byte_fallback=True,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                split_digits=True,
                add_dummy_prefix=True,
                pad_id=PAD_ID,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                unk_id=UNK_ID,
                num_threads=1,
                minloglevel=2,
            )
        except (RuntimeError, OSError) as error:
            cannot = f"This text cannot give a vocabulary of {vocab_size} pieces"
            reason = _reason(error)
            if fewest := _FEWEST.search(reason):
                reason = f"it needs at least {fewest[1]}. Choose so many with --vocab-size."
            elif "too high" in reason:
                most = cls.train(texts, vocab_size, at_most=True).vocab_size
                reason = f"it gives at most {most}. Choose at most so many with --vocab-size."
            raise TokenizerError(f"{cannot}: {reason}") from error
        return cls(written.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Reads a sentencepiece model file.

        Raises:
            TokenizerError: The file is missing, damaged, or not a model of this package.
        """
        try:
            return cls(Path(path).read_bytes())
        except OSError as error:
            raise TokenizerError(f"The tokenizer file {path} cannot be read: {error.strerror}.") from error

    def to_bytes(self) -> bytes:
        """The bytes of the sentencepiece model, as a file holds them."""
        return self._serialized

    @property
    def vocab_size(self) -> int:
        """Number of pieces."""
        return int(self._processor.get_piece_size())

    @property
    def spells_all(self) -> bool:
        """True if bytes spell what no other piece does, so that `<unk>` never stands for a text."""
        return any(self._processor.IsByte(number) for number in range(self.vocab_size))

    @property
    def target_size(self) -> int:
        """Number of pieces; source and target share them."""
        return self.vocab_size

    def read(self, text: str) -> str:
        """The text cleaned, with plain characters for typographic ones that have no piece."""
        return typed.read(text, self.lacks).text

    def lacks(self, character: str) -> bool:
        """True if a character has no piece: it is read as `<unk>`, or spelled in bytes."""
        found = self._processor.EncodeAsIds(character)
        return self.special.unk in found or any(map(self._processor.IsByte, found))

    def cut(self, text: str) -> PiecedText:
        """Reads a text as it was typed, and splits it; without `<s>` and `</s>`."""
        reading = typed.read(text, self.lacks)
        found = self._processor.EncodeAsOffsetMapping(reading.text)
        return typed.cut(reading, found["ids"], found["pieces"], found["offsets"], self.special.unk)

    def cut_target(self, text: str) -> PiecedText:
        """The same as ``cut``."""
        return self.cut(text)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without `<s>` and `</s>`."""
        return list(self._processor.EncodeAsIds(text))

    def encode_target(self, text: str) -> list[int]:
        """The same as ``encode``."""
        return self.encode(text)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts at once, each of them read."""
        read = list(map(self.read, texts))
        return [list(ids) for ids in self._processor.EncodeAsIds(read)] if read else []

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; special ids are left out."""
        left_out = self.special[:3]
        return str(self._processor.DecodeIds([int(i) for i in ids if int(i) not in left_out]))

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of ids, with `▁` and `</s>` kept."""
        size = self.vocab_size
        return tuple(self._processor.IdToPiece(int(i)) if i < size else NO_PIECE for i in ids)

    def source_pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The same as ``pieces``."""
        return self.pieces(ids)

    def piece_id(self, piece: str) -> int:
        """The id of one piece, or the id of `<unk>` if the vocabulary lacks the piece."""
        return int(self._processor.PieceToId(piece))


def _reason(error: Exception) -> str:
    """The last sentence of a sentencepiece error, without the leading position in the source code."""
    return str(error).rsplit("] ", 1)[-1].strip() or "sentencepiece gave no reason."
