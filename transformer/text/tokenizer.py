"""From a text to pieces and ids, and back; and a joint sub-word vocabulary, sentencepiece unigram.

The pieces of a vocabulary that this package trains are not normalised or case-folded, and
characters that never occurred in the training text are written as UTF-8 bytes. So an encoded
sentence always decodes to itself. ``read`` makes a text ready, see ``typed``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, NamedTuple

import sentencepiece

from transformer.text import typed
from transformer.text.kinds import listed
from transformer.text.typed import PLAIN, CleanText
from transformer.text.words import (
    EOS,
    MASK,
    NO_PIECE,
    SPACE,
    UNK,
    Group,
    Special,
    in_bytes,
    unknown_piece,
)

PAD_ID, BOS_ID, EOS_ID, UNK_ID = 0, 1, 2, 3
NO_ID = -1
"""Is no piece's."""
MOST_LISTED = 10
"""Characters that a note names."""
_MASKS = re.compile(rf" ?({MASK}) ?")
"""A mask stands for a piece with the space before it."""
_FEWEST = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


class SpecialIds(NamedTuple):
    """Ids of the pieces that no text contains; one past the last piece for a piece that does not
    exist."""

    pad: int = PAD_ID
    bos: int = BOS_ID
    eos: int = EOS_ID
    unk: int = UNK_ID


SPECIAL_IDS = SpecialIds()
"""Those of the vocabularies that this package trains."""


class TokenizerError(ValueError):
    """A tokenizer cannot be trained or loaded; the message says why and what to do."""


@dataclass(frozen=True)
class TokenizedText:
    """A text in pieces, without special tokens."""

    clean: CleanText
    ids: tuple[int, ...]
    pieces: tuple[str, ...]  # `▁` kept; a text without a piece of its own is `<unk:text>`
    # for each piece, the word of the typed text that it stands in, from 0; −1 for one that stands
    # for no text
    words: tuple[int, ...]
    unknown: tuple[str, ...]  # characters read as unknown, each once, in order
    spelled: tuple[str, ...]  # characters spelled in bytes, each once, in order
    start: int | None = None  # id of the piece that the output begins with, if the text names one

    def notes(self) -> tuple[str, ...]:
        """Sentences for the reader: what the vocabulary has no piece for."""
        plain = dict.fromkeys(PLAIN[character].strip() for character in self.clean.plain)
        lacking = (
            (
                self.clean.plain,
                "reads",
                plain and f"as the plain {listed(plain, most=MOST_LISTED)}",
            ),
            (self.unknown, "reads", "as unknown"),
            (self.spelled, "spells", "in bytes"),
        )
        return tuple(
            f"This model has no piece for {listed(characters, most=MOST_LISTED)}; "
            f"it {does} {'them' if len(characters) > 1 else 'it'} {how}."
            for characters, does, how in lacking
            if characters
        )

    def groups(self) -> tuple[Group, ...]:
        """The pieces of each word of the typed text; a word that drew nothing has none."""
        texts = list(zip(self.clean.words, self.clean.text.split(), strict=True))
        groups = []
        for word, places in groupby(range(len(self.words)), self.words.__getitem__):
            indices = list(places)
            if word >= 0:
                name = " ".join(text for number, text in texts if number == word)
                groups.append(Group(indices[0], indices[-1] + 1, name))
        return tuple(groups)


class Pieces:
    """The pieces of one side, and what splits a text into them."""

    # whether a text is read as it was typed, with its line breaks and blanks; else it is cleaned
    as_typed: bool = False
    # the id of each piece of a text, the piece, where it begins, and where it ends; the piece is as
    # sentencepiece writes it: an unknown one is its own text
    split: Callable[[str], Iterator[tuple[int, str, int, int]]]
    decode: Callable[[Iterable[int]], str]  # the text of ids; special ids are left out

    def __init__(
        self,
        ids: Mapping[str, int],
        pieces: Sequence[str],
        special: Iterable[int],  # the ids that stand for no text
        in_bytes: Iterable[int] = (),
    ) -> None:
        self.ids = ids  # the id of each piece, as a file names it
        # the piece of each id, as a page can show it, with ``▁`` for a space
        named = list(pieces)
        for number in special:
            named[number] = Special(named[number])
        self.pieces = tuple(named)
        # the ids that spell what has no piece
        self.unknown = ids.get(UNK, NO_ID)
        self.bytes = frozenset(in_bytes)

    def encode(self, text: str) -> list[int]:
        """The ids of a text that has been read, without special tokens."""
        return [number for number, *_ in self.split(text)]

    def lacks(self, character: str) -> bool:
        """True if a character has no piece, though bytes may spell it."""
        return not {self.unknown, *self.bytes}.isdisjoint(self.encode(character))

    def _first_character(self, text: str, start: int, stop: int) -> int:
        """Where the first character of a piece stands that is no blank, if there is one."""
        if not self.as_typed:
            return start + (text[start : start + 1] == " ")
        visible = (at for at in range(start, stop) if not text[at].isspace())
        return next(visible, start)

    def text(self, ids: Iterable[int]) -> str:
        """The text of ids, without special ones, and without blanks around it unless they count."""
        written = self.decode(map(int, ids))
        return written if self.as_typed else written.strip()

    def named(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of ids, with ``▁`` kept."""
        return tuple(self.pieces[i] if i < len(self.pieces) else NO_PIECE for i in map(int, ids))

    def cut(self, text: str) -> TokenizedText:
        """Reads a text as it was typed, and splits it; without special tokens."""
        if self.as_typed:
            clean = typed.as_typed(text)
            word_at = _words_between_blanks(clean)
        else:
            clean = typed.read(text, self.lacks)
            word_at = _words_between_spaces(clean)
        ids = list[int]()
        pieces = list[str]()
        words = list[int]()
        unknown = dict[str, None]()
        spelled = dict[str, None]()
        for number, piece, start, stop in self.split(clean.text):
            first = self._first_character(clean.text, start, stop)
            if number == self.unknown:
                own = clean.text[start:stop].strip()
                unknown |= dict.fromkeys(own or clean.text[first])
                piece = SPACE * piece.startswith(SPACE) + unknown_piece(
                    own or piece.removeprefix(SPACE)
                )
            else:
                piece = self.pieces[number]
                if in_bytes(piece) and not clean.text[first].isspace():
                    spelled[clean.text[first]] = None
            ids.append(number)
            pieces.append(piece)
            words.append(word_at[first])
        return TokenizedText(
            clean,
            tuple(ids),
            tuple(pieces),
            tuple(words),
            unknown=tuple(unknown),
            spelled=tuple(spelled),
        )


def _words_between_spaces(clean: CleanText) -> list[int]:
    """For each character of a cleaned text, and after the last, the word that it stands in."""
    if not clean.words:
        return [NO_ID]
    numbers = accumulate((char == " " for char in clean.text), initial=0)
    last = len(clean.words) - 1
    return [clean.words[min(number, last)] for number in numbers]


def _words_between_blanks(clean: CleanText) -> list[int]:
    """For each character of a text as it was typed, and after the last, the word that it stands in;
    −1 for a blank."""
    numbers = list[int]()
    begun = 0
    before = " "
    for char in clean.text:
        begun += before.isspace() and not char.isspace()
        numbers.append(NO_ID if char.isspace() else begun - 1)
        before = char
    return [*numbers, NO_ID]


class Vocabulary:
    """A translator's tokenizer. Source and target may have separate pieces."""

    def __init__(
        self,
        source: Pieces,
        target: Pieces,
        languages: Sequence[str] = (),  # pieces that name a language, in the order of their ids
        # whether a text begins with two of them, its own and that of the output
        pair: bool = False,
        before: Sequence[str] = (),  # pieces that stand before each source
    ) -> None:
        self.source = source
        self.target = target
        self.languages = tuple(languages)
        self.pair = pair
        self.vocab_size = len(source.pieces)  # number of source pieces
        self._before = tuple(before)
        self._before_ids = tuple(source.ids[piece] for piece in before)

    def cut(self, text: str) -> TokenizedText:
        """Reads a source text as it was typed, and splits it; without the end token.

        The language of the output, if the text begins with a pair, is no piece of the source.
        """
        cut = self.source.cut(text)
        ids, pieces, words = cut.ids, cut.pieces, cut.words
        if self.pair and len(ids) > 1 and set(pieces[:2]) <= set(self.languages):
            ids = ids[:1] + ids[2:]
            pieces = pieces[:1] + pieces[2:]
            words = words[:1] + words[2:]
            return replace(cut, ids=ids, pieces=pieces, words=words, start=cut.ids[1])
        if not ids or not self._before:
            return cut
        words = (-1,) * len(self._before) + words
        return replace(cut, ids=self._before_ids + ids, pieces=self._before + pieces, words=words)


class Tokenizer(Vocabulary):
    """The vocabulary of a sentencepiece model, shared by source and target.

    In vocabularies of this package, ids 0 to 3 are `<pad>`, `<s>`, `</s>` and `<unk>`. If a
    sentence contains the text `<s>`, ordinary pieces spell it, never the special id.
    """

    def __init__(self, serialized: bytes) -> None:
        """Reads the bytes of a model; TokenizerError if they are none, or it has no `</s>` or no
        `<unk>`."""
        self.serialized = serialized  # as a file holds it
        self._pieces = _OwnPieces(serialized)
        self.special = self._pieces.special  # ids of the special pieces
        super().__init__(self._pieces, self._pieces)

    @classmethod
    def train(
        cls,
        sentences: Iterable[str],
        vocab_size: int,
        at_most: bool = False,
        masks: bool = False,
    ) -> Tokenizer:
        """Trains one joint vocabulary on plain sentences of both languages, mixed.

        ``vocab_size`` counts the 4 special pieces and the 256 byte pieces; with ``at_most``, a text
        that cannot give so many pieces gives as many as it can; with ``masks``, one of the pieces
        is ``<mask>``, which stands for a hidden one. TokenizerError if the size is too small or too
        large.
        """
        texts = list(map(typed.clean, sentences))
        written = io.BytesIO()
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
                control_symbols=[str(MASK)] if masks else [],
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
            # the last sentence, without the position in sentencepiece's source before it
            reason = str(error).rsplit("] ", 1)[-1].strip() or "sentencepiece gave no reason."
            if fewest := _FEWEST.search(reason):
                reason = f"it needs at least {fewest[1]}. Choose so many with --vocab-size."
            elif "too high" in reason:
                most = cls.train(texts, vocab_size, at_most=True, masks=masks).vocab_size
                reason = f"it gives at most {most}. Choose at most so many with --vocab-size."
            raise TokenizerError(f"{cannot}: {reason}") from error
        return cls(written.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Reads a file; TokenizerError if it is missing, damaged, or not a model of this
        package."""
        try:
            return cls(Path(path).read_bytes())
        except OSError as error:
            raise TokenizerError(
                f"The tokenizer file {path} cannot be read: {error.strerror}."
            ) from error

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts at once, each of them read."""
        read = [typed.read(text, self.source.lacks).text for text in texts]
        return [list(ids) for ids in self._pieces.processor.EncodeAsIds(read)] if read else []


class _OwnPieces(Pieces):
    def __init__(self, serialized: bytes) -> None:
        self.processor, pieces = sentencepiece_model(serialized, "The tokenizer file")
        model = self.processor
        ids = [model.pad_id(), model.bos_id(), model.eos_id(), model.unk_id()]
        if min(ids[2:]) < 0:
            raise TokenizerError(
                f"The tokenizer has no {EOS} or no {UNK}, which this package needs."
            )
        self.special = SpecialIds(*(len(pieces) if id_ < 0 else id_ for id_ in ids))
        numbers = {piece: number for number, piece in enumerate(pieces)} | {UNK: ids[3]}
        every = range(len(pieces))
        special = {ids[3], *filter(model.IsControl, every)}
        super().__init__(numbers, pieces, special, filter(model.IsByte, every))

    def split(self, text: str) -> Iterator[tuple[int, str, int, int]]:
        if MASK not in self.ids:
            yield from self._split(text, 0)
            return
        at = 0
        joins = False  # whether a part follows a mask at once, without a space between
        for mask in _MASKS.finditer(text):
            yield from self._part(text[at : mask.start()], at, joins)
            yield self.ids[MASK], str(MASK), *mask.span(1)
            at = mask.end()
            joins = mask.end() == mask.end(1)
        yield from self._part(text[at:], at, joins)

    def _part(self, text: str, at: int, joins: bool) -> Iterator[tuple[int, str, int, int]]:
        """The pieces of a part between masks; one that joins a mask begins with no space alone,
        which every text gets."""
        pieces = self._split(text, at)
        for place, piece in enumerate(pieces):
            if joins and place == 0 and piece[1] == SPACE:
                continue
            yield piece

    def _split(self, text: str, at: int) -> Iterator[tuple[int, str, int, int]]:
        """The pieces of a part of a text that begins at a place."""
        read = self.processor.EncodeAsOffsetMapping(text)
        for number, piece, (begin, end) in zip(
            read["ids"], read["pieces"], read["offsets"], strict=True
        ):
            yield number, piece, at + begin, at + end

    def decode(self, ids: Iterable[int]) -> str:
        return str(
            self.processor.DecodeIds([int(i) for i in ids if int(i) not in self.special[:3]])
        )


def sentencepiece_model(serialized: bytes, name: str) -> tuple[Any, list[str]]:
    """A sentencepiece model and its pieces; TokenizerError, with a name for it, if it is damaged or
    empty."""
    try:
        model = sentencepiece.SentencePieceProcessor(model_proto=serialized)
        count = model.get_piece_size() if serialized else 0
        pieces: list[str] = model.IdToPiece(list(range(count)))  # each is UTF-8
    except (RuntimeError, TypeError, UnicodeDecodeError) as error:
        raise TokenizerError(f"{name} is damaged or is not a sentencepiece model.") from error
    if not pieces:
        raise TokenizerError(f"{name} is empty or is not a sentencepiece model.")
    return model, pieces
