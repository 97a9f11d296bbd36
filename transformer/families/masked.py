"""The vocabularies of encoders alone: what stands around a text, and what stands for a hidden word,
known by id."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

from transformer.config import EncoderConfig
from transformer.families.bart import IDS_FILE, MERGES_FILE, PIECES_FILE, byte_level, with_behind
from transformer.families.encoder import EncoderFamily
from transformer.families.pieces import (
    SETTINGS_FILE,
    SPECIAL,
    WHOLE_FILE,
    WORDS_FILE,
    SentencePieces,
    check_pieces,
    named_by,
    read_model,
    settings_of,
)
from transformer.families.weights import ANY_FAMILY
from transformer.families.whole import CONTINUES, Whole
from transformer.families.written import TypedPieces, unknown_id
from transformer.storage.files import CheckpointError, check_vocabulary
from transformer.text.tokenizer import Pieces, TokenizedText, TokenizerError, Vocabulary
from transformer.text.typed import without_surrogates
from transformer.text.words import SPACE

SPECIAL_FILE = "special_tokens_map.json"
MASKS: tuple[str, ...] = "[MASK]", "<mask>"
"""What the piece that stands for a hidden word is called, if no file names it."""
UNKNOWN = "[UNK]"
_NAMED = {
    "unk_token": UNKNOWN,
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
"""The special pieces of a ``vocab.txt``, by the entries that may name them otherwise."""


class FramedPieces(TypedPieces):
    """Pieces of the library tokenizers for texts that an encoder reads: those that begin a word
    have ``▁``, which WordPiece leaves out."""

    def __init__(self, tokenizer: Whole, size: int) -> None:
        """CheckpointError, naming the file, if a piece has no row."""
        super().__init__(tokenizer, size)
        unknown = tokenizer.unknown
        if unknown is not None:
            self.unknown = unknown

    def spelling(self, special: Collection[int]) -> Callable[[str], str]:
        """As ``TypedPieces``; `##ing` is `ing`, and `the` is `▁the`."""
        continues = self.tokenizer.continues
        if not continues:
            return super().spelling(special)
        ids = self.tokenizer.ids()
        textless = {"", *(piece for piece, number in ids.items() if number in special)}

        def spelled(piece: str) -> str:
            if piece in textless:
                return piece
            rest = piece.removeprefix(continues)
            if rest in ("", piece):
                return without_surrogates(SPACE + piece)
            return without_surrogates(rest)

        return spelled

    def split(self, text: str) -> Iterator[tuple[int, str, int, int]]:
        before = ""
        last = -1
        read = self.tokenizer.encode(text)
        for number, token, (begin, end) in zip(read.ids, read.tokens, read.offsets, strict=True):
            piece = self.pieces[number]
            if number == self.unknown and begin == last:  # within what one character became
                piece = token
                end = begin
            elif number == self.unknown:
                piece = text[begin:end].strip()
                if before != SPACE and self._begins_word(text, begin):
                    piece = SPACE + piece
            yield number, piece, begin, end
            before = piece
            last = begin

    def _begins_word(self, text: str, place: int) -> bool:
        """Whether an unknown piece at a place of a text begins a word: all of WordPiece do."""
        around = text[max(0, place - 1) : place + 1]
        return bool(self.tokenizer.continues) or not place or any(map(str.isspace, around))

    def with_frame(self, config: EncoderConfig) -> EncoderConfig | None:
        """The config with what the file puts around a text, and between two; None if it puts
        nothing.

        CheckpointError if it puts something else than a start, an end behind each text, and at
        most one more between two.
        """
        (first, second) = (self.encode(text) for text in "ab")
        framed = self.tokenizer.encode("a", framed=True).ids
        if framed == first:
            return None
        begin, *_, end = framed
        pair = self.tokenizer.encode("a", framed=True, second="b")
        n_separators = len(pair.ids) - len(framed) - len(second)
        between = [end] * n_separators
        if framed != [begin, *first, end] or pair.ids != [*framed[:-1], *between, *second, end]:
            raise CheckpointError(
                f"{self.tokenizer.path} puts other tokens around a text than models of this "
                "family read; it is not supported."
            )
        n_segments = min(config.n_segments, max(pair.type_ids) + 1)
        framed_by = replace(
            config,
            bos_id=begin,
            eos_id=end,
            n_separators=n_separators,
            n_segments=n_segments,
        )
        ended = [pair.ids[:place].count(end) for place in range(len(pair.ids))]
        if n_segments > 1 and pair.type_ids != [min(n, n_segments - 1) for n in ended]:
            raise CheckpointError(
                f"{self.tokenizer.path} numbers the texts of a pair otherwise than by their ends; "
                "it is not supported."
            )
        return framed_by


class TypedFairseqPieces(SentencePieces):
    """Pieces of XLM-R's sentencepiece model, for texts as they were typed."""

    as_typed = True


class PlacedVocabulary(Vocabulary):
    """A vocabulary with a piece that has no position in a text."""

    def __init__(self, pieces: Pieces, placeless: int) -> None:
        super().__init__(pieces, pieces)
        self._placeless = placeless  # its id

    def cut(self, text: str) -> TokenizedText:
        """As ``Vocabulary.cut``; TokenizerError if the text holds that piece."""
        cut = super().cut(text)
        if self._placeless in cut.ids:
            (piece,) = self.source.named([self._placeless])
            raise TokenizerError(f"This model has no position for {piece} in a text; leave it out.")
        return cut


def read_vocabulary(
    family: EncoderFamily, directory: Path, config: EncoderConfig
) -> tuple[Vocabulary, EncoderConfig]:
    """The vocabulary of a directory, and the config with what only the vocabulary knows.

    CheckpointError if a file is missing, damaged, too large or another model's.
    """
    pieces = _pieces(family, directory, config)
    framed = None
    if isinstance(pieces, FramedPieces):
        framed = pieces.with_frame(config)
    if framed is None:
        framed = _framed_by_name(family, directory, config, pieces)
    config = replace(
        framed, unk_id=unknown_id(pieces, config.vocab_size), mask_id=_mask_id(directory, pieces)
    )
    placeless = pieces.ids.get(family.placeless)
    if placeless is None:
        return Vocabulary(pieces, pieces), config
    return PlacedVocabulary(pieces, placeless), config


def _mask_id(directory: Path, pieces: Pieces) -> int | None:
    """The id of what stands for a hidden word; None if there is no such piece."""
    stated = named(directory, "mask_token")
    names = MASKS
    if stated is not None:
        names = (stated,)
    return next((pieces.ids[name] for name in names if name in pieces.ids), None)


def _pieces(family: EncoderFamily, directory: Path, config: EncoderConfig) -> Pieces:
    """The pieces of whichever file is there."""
    size = config.vocab_size
    if (directory / WHOLE_FILE).is_file():
        return FramedPieces(Whole.read(directory / WHOLE_FILE), size)
    _check_tokenizer(family, directory)
    if family.byte_level and (directory / MERGES_FILE).is_file():
        return FramedPieces(_byte_level(directory, size), size)
    if family.byte_level and (directory / PIECES_FILE).is_file():
        return _fairseq(directory / PIECES_FILE, size)
    if not family.byte_level and (directory / WORDS_FILE).is_file():
        return FramedPieces(_word_pieces(directory), size)
    needed = WORDS_FILE
    if family.byte_level:
        needed = f"{MERGES_FILE}, no {PIECES_FILE}"
    raise CheckpointError(
        f"{directory} has no {WHOLE_FILE} and no {needed}, so its texts cannot be read."
    )


def _check_tokenizer(family: EncoderFamily, directory: Path) -> None:
    """CheckpointError if the files name a tokenizer whose rules only its program knows."""
    stated = settings_of(directory).get("tokenizer_class")
    known = (*family.tokenizers, *ANY_FAMILY)
    if isinstance(stated, str) and stated.removesuffix("Fast") not in known:
        raise CheckpointError(
            f"{directory} names the tokenizer {stated!r:.60}, which reads texts otherwise than "
            f"{' and '.join(family.tokenizers)}; without a {WHOLE_FILE} it is not supported."
        )


def _byte_level(directory: Path, size: int) -> Whole:
    """RoBERTa's two files."""
    files = [directory / IDS_FILE, directory / MERGES_FILE]
    if not files[0].is_file():
        raise CheckpointError(f"{directory} has {MERGES_FILE} but no {IDS_FILE}.")
    if settings_of(directory).get("add_prefix_space"):
        raise CheckpointError(
            f"{directory} says add_prefix_space, which is not supported without a {WHOLE_FILE}."
        )
    return byte_level(files, size)


def _fairseq(path: Path, size: int) -> Pieces:
    """XLM-R's pieces: fairseq's first four for sentencepiece's first three, and the mask last."""
    processor, pieces = read_model(path)
    ids = with_behind({}, (*SPECIAL, *pieces[3:], MASKS[1]))
    check_pieces(path, SPECIAL, ids, size)
    return TypedFairseqPieces(processor, path.parent, ids, size, {*SPECIAL, MASKS[1]})


def _word_pieces(directory: Path) -> Whole:
    """BERT's file of pieces, a line each, with the special ones of the settings."""
    path = directory / WORDS_FILE
    check_vocabulary(path)
    try:
        pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeError as error:
        raise CheckpointError(f"{path} is not UTF-8 text.") from error
    names = {entry: named(directory, entry) or usual for entry, usual in _NAMED.items()}
    unknown = names["unk_token"]
    if unknown not in pieces or not any(piece.startswith(CONTINUES) for piece in pieces):
        raise CheckpointError(f"{path} is not a vocabulary of WordPiece with {unknown:.40}.")
    tokenizer = Whole.word_pieces(path, pieces, unknown, settings_of(directory))
    tokenizer.add([name for name in names.values() if name in pieces], special=True)
    return tokenizer


def _framed_by_name(
    family: EncoderFamily, directory: Path, config: EncoderConfig, pieces: Pieces
) -> EncoderConfig:
    """The config with the ids of what the settings, or the family, put around a text."""
    frame = family.frame
    begin = named(directory, "cls_token") or frame.begin
    end = named(directory, "sep_token") or frame.end
    for name in (begin, end):
        if name not in pieces.ids:
            raise CheckpointError(
                f"{directory} has no piece {name:.40} that would stand around a text."
            )
    return replace(
        config,
        bos_id=pieces.ids[begin],
        eos_id=pieces.ids[end],
        n_separators=frame.n_separators,
        n_segments=min(config.n_segments, frame.n_segments),
    )


def named(directory: Path, entry: str) -> str | None:
    """The special piece that the settings name; None if they name none."""
    for file in (SETTINGS_FILE, SPECIAL_FILE):
        piece = named_by(settings_of(directory, file).get(entry))
        if piece is not None:
            return piece
    return None
