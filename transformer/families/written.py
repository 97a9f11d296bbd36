"""The vocabularies of decoders: they read a text as it was typed, with line breaks and blanks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from transformer.config import LanguageModelConfig
from transformer.families.decoder import DecoderFamily
from transformer.families.family import Json
from transformer.families.pieces import (
    WHOLE_FILE,
    byte_name,
    check_pieces,
    named_by,
    pieces_by_id,
    settings_of,
)
from transformer.families.whole import Whole
from transformer.storage.files import CheckpointError, check_vocabulary
from transformer.text.chat import MOST_TEMPLATE
from transformer.text.tokenizer import Pieces, TokenizerError, Vocabulary, sentencepiece_model
from transformer.text.typed import without_surrogates
from transformer.text.words import SPACE

IDS_FILE, MERGES_FILE, SENTENCEPIECE_FILE = "vocab.json", "merges.txt", "tokenizer.model"


class TypedPieces(Pieces):
    """Pieces of the library tokenizers, for texts as they were typed."""

    as_typed = True

    def __init__(self, tokenizer: Whole, size: int) -> None:
        """CheckpointError, naming the file, if a piece has no row."""
        ids = tokenizer.ids()
        check_pieces(tokenizer.path, (), ids, size)
        tokenizer.probe()
        self.tokenizer = tokenizer
        nameless = set(range(size)) - set(ids.values())
        special = [number for number in tokenizer.special_ids() if number < size]
        named = pieces_by_id(ids, size, self.spelling(special))
        super().__init__(ids, named, [*special, *nameless])

    def spelling(self, special: Collection[int]) -> Callable[[str], str]:
        """What makes the name of a piece as a page can show it; ``special`` are ids of pieces that
        no text contains."""
        if self.tokenizer.in_bytes:
            return byte_name
        return without_surrogates

    def split(self, text: str) -> Iterator[tuple[int, str, int, int]]:
        read = self.tokenizer.encode(text)
        for number, (begin, end) in zip(read.ids, read.offsets, strict=True):
            yield number, self.pieces[number], begin, end

    def decode(self, ids: Iterable[int]) -> str:
        return self.tokenizer.decode([*ids])

    def framed_by(self) -> int | None:
        """The id that the file puts before every text; None if it puts none.

        CheckpointError if it puts something else around a text.
        """
        bare = self.tokenizer.encode("a").ids
        framed = self.tokenizer.encode("a", framed=True).ids
        if framed == bare:
            return None
        if framed[1:] != bare:
            raise CheckpointError(
                f"{self.tokenizer.path} puts more around a text than a token before it; it is not "
                "supported."
            )
        return int(framed[0])


class TypedSentencePieces(Pieces):
    """Pieces of a sentencepiece model, for texts as they were typed; CheckpointError if it is
    damaged."""

    as_typed = True

    def __init__(self, serialized: bytes, path: Path, size: int) -> None:
        try:
            self._processor, pieces = sentencepiece_model(serialized, path.name)
        except TokenizerError as error:
            raise CheckpointError(str(error)) from error
        ids = {piece: number for number, piece in enumerate(pieces)}
        check_pieces(path, (), ids, size)
        every = range(len(pieces))
        unknown = self._processor.unk_id()
        special = {unknown, *filter(self._processor.IsControl, every)} - {-1}
        spelled_bytes = filter(self._processor.IsByte, every)
        super().__init__(
            ids, pieces_by_id(ids, size, without_surrogates), special, in_bytes=spelled_bytes
        )
        self.unknown = unknown

    def split(self, text: str) -> Iterator[tuple[int, str, int, int]]:
        read = self._processor.EncodeAsOffsetMapping(text)
        for number, piece, (begin, end) in zip(
            read["ids"], read["pieces"], read["offsets"], strict=True
        ):
            yield number, piece, begin, end

    def decode(self, ids: Iterable[int]) -> str:
        numbers = [number for number in ids if not self._processor.IsControl(number)]
        text = str(self._processor.DecodePieces([self.pieces[number] for number in numbers]))
        return text.replace(SPACE, " ")


def read_vocabulary(
    family: DecoderFamily, directory: Path, config: LanguageModelConfig
) -> tuple[Vocabulary, LanguageModelConfig]:
    """The vocabulary of a directory, and the config with what only the vocabulary knows.

    CheckpointError if a file is missing, damaged, too large or another model's.
    """
    settings = settings_of(directory)
    pieces, start = _pieces(family, directory, config, settings)
    stated = settings.get("add_bos_token")
    if stated is False:
        start = None
    elif stated is True and start is None:
        start = config.bos_id
    return Vocabulary(pieces, pieces), with_ids(config, pieces, start)


def _pieces(
    family: DecoderFamily, directory: Path, config: LanguageModelConfig, settings: Json
) -> tuple[Pieces, int | None]:
    """The pieces of whichever file is there, and the id that the file puts before every text."""
    size = config.vocab_size
    if (directory / WHOLE_FILE).is_file():
        whole = TypedPieces(Whole.read(directory / WHOLE_FILE), size)
        return whole, whole.framed_by()
    if family.byte_level and (directory / IDS_FILE).is_file():
        return TypedPieces(_byte_level(directory, settings, config), size), None
    path = directory / SENTENCEPIECE_FILE
    if not path.is_file():
        raise CheckpointError(
            f"{directory} has no {WHOLE_FILE} and no {SENTENCEPIECE_FILE}, so its texts cannot be "
            "read."
        )
    check_vocabulary(path)
    return TypedSentencePieces(path.read_bytes(), path, size), config.bos_id


def with_ids(config: LanguageModelConfig, pieces: Pieces, start: int | None) -> LanguageModelConfig:
    """The config with the token that every text begins with, if there is one, and the unknown
    piece's id, if there is one."""
    return replace(
        config,
        bos_id=config.bos_id if start is None else start,
        starts_with_token=start is not None,
        unk_id=unknown_id(pieces, config.vocab_size),
    )


def unknown_id(pieces: Pieces, size: int) -> int:
    """The id of the piece that stands for what has none; one past the last if everything has
    pieces."""
    if pieces.unknown < 0:
        return size
    return pieces.unknown


def _byte_level(directory: Path, settings: Json, config: LanguageModelConfig) -> Whole:
    """The two files of a byte-level vocabulary, with the special tokens of the settings."""
    merges = directory / MERGES_FILE
    if not merges.is_file():
        raise CheckpointError(f"{directory} has {IDS_FILE} but no {MERGES_FILE}.")
    tokenizer = Whole.byte_level(directory / IDS_FILE, merges)
    known = tokenizer.ids()
    special = {config.eos_id, config.bos_id, config.pad_id}
    names = [piece for piece, number in known.items() if number in special]
    tokenizer.add([*names, *_named(settings, known)], special=True)
    return tokenizer


def _named(settings: Json, known: Collection[str]) -> Iterator[str]:
    """The pieces that the settings call special."""
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        piece = named_by(settings.get(name))
        if piece is not None and piece in known:
            yield piece


TEMPLATE_FILE = "chat_template.jinja"


def chat_template(directory: Path) -> str:
    """The template of conversations of a directory; empty if it brings none."""
    path = directory / TEMPLATE_FILE
    if path.is_file():
        with path.open("rb") as file:
            return file.read(MOST_TEMPLATE + 1).decode("utf-8", "replace")
    stated = settings_of(directory).get("chat_template")
    if isinstance(stated, list):  # several, by their names
        templates = [entry for entry in stated if isinstance(entry, dict)]
        usual = (entry for entry in templates if entry.get("name") == "default")
        stated = next(usual, {}).get("template")
    return stated if isinstance(stated, str) else ""
