"""The vocabulary of BART: byte-level BPE, which the optional package `tokenizers` reads and applies.

A piece is a sequence of bytes. It is named by its text, with `▁` for a space as in every vocabulary here;
bytes that are no whole character are named by their codes, such as `<0xF0><0x9F>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformer.families.pieces import PieceIds, PublishedVocabulary, Splitter
from transformer.storage.files import CheckpointError, check_vocabulary
from transformer.text import typed
from transformer.text.typed import PiecedText
from transformer.text.words import BOS, EOS, PAD, SPACE, UNK

WHOLE_FILE = "tokenizer.json"
IDS_FILE, MERGES_FILE = "vocab.json", "merges.txt"
MASK = "<mask>"
SPECIAL = BOS, PAD, EOS, UNK
MISSING = (
    "{} has a byte-level vocabulary, which needs the package tokenizers: install it with "
    "`pip install tokenizers`."
)


def _alphabet() -> dict[str, int]:
    """The letter that stands for each byte in a file: itself if it is visible, else one from U+0100 on."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(0x100) if byte not in visible)
    return {chr(byte): byte for byte in visible} | {chr(0x100 + at): byte for at, byte in enumerate(others)}


_BYTES = _alphabet()


def named(token: str) -> str:
    """The name of a token of a file: `Ġhouse` is `▁house`."""
    if not set(token) <= _BYTES.keys():
        return token  # a special one
    text = bytes(_BYTES[letter] for letter in token).decode("utf-8", "surrogateescape")
    return "".join(map(_letter, text))


def _letter(letter: str) -> str:
    code = ord(letter)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no character
        return f"<0x{code - 0xDC00:02X}>"
    if letter == " ":
        return SPACE
    return letter if letter.isprintable() or code > 0xFF else "".join(f"<0x{b:02X}>" for b in letter.encode())


class ByteSplitter(Splitter):
    """Splits texts into pieces with the package `tokenizers`."""

    def __init__(self, tokenizer: Any, table: PieceIds) -> None:
        self._tokenizer, self.table = tokenizer, table

    def split(self, text: str) -> Iterator[tuple[str, int, int]]:
        found = self._tokenizer.encode(text, add_special_tokens=False)
        for piece, (first, last) in zip(found.tokens, found.offsets, strict=True):
            yield piece, first, last

    def cut(self, text: str) -> PiecedText:
        reading = typed.read(text)
        found = self._tokenizer.encode(reading.text, add_special_tokens=False)
        pieces = [self.table.pieces[number] for number in found.ids]
        return typed.cut(reading, found.ids, pieces, found.offsets, self.table.ids[UNK])

    def decode(self, ids: Iterable[int]) -> str:
        return str(self._tokenizer.decode([*ids], skip_special_tokens=True)).strip()


class BartVocabulary(PublishedVocabulary):
    """A source begins with `<s>`, too; a target does not, since the search begins it."""

    def cut(self, text: str) -> PiecedText:
        found = super().cut(text)
        if not found.ids:
            return found
        start = self.source.ids[BOS]
        return replace(found, ids=(start, *found.ids), pieces=(BOS, *found.pieces), words=(-1, *found.words))

    def encode(self, text: str) -> list[int]:
        return [self.source.ids[BOS], *super().encode(text)]


def read_vocabulary(directory: Path, size: int) -> BartVocabulary:
    """Reads the vocabulary of a model with so many rows of embeddings.

    CheckpointError if a file is missing, damaged or too large, there are more pieces than rows, or the
    package `tokenizers` is not installed.
    """
    whole = directory / WHOLE_FILE
    files = [whole] if whole.is_file() else [directory / IDS_FILE, directory / MERGES_FILE]
    if absent := [path.name for path in files if not path.is_file()]:
        raise CheckpointError(
            f"{directory} has no {WHOLE_FILE} and no {absent[0]}, so it is not a complete model directory."
        )
    for path in files:
        check_vocabulary(path)
    tokenizer = _tokenizer(directory, files)
    ids: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    if missing := [piece for piece in SPECIAL if piece not in ids]:
        raise CheckpointError(
            f"{files[0]} has no piece {missing[0]}, so it is no vocabulary of a BART model."
        )
    if max(ids.values()) >= size:
        raise CheckpointError(
            f"{files[0]} has {max(ids.values()) + 1:,} pieces, but config.json has {size:,} rows for them; "
            "the files belong to different models."
        )
    splitter = ByteSplitter(tokenizer, PieceIds(ids, size, named))
    return BartVocabulary(splitter, splitter)


def _tokenizer(directory: Path, files: list[Path]) -> Any:
    try:
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    except ImportError as error:
        raise CheckpointError(MISSING.format(directory)) from error
    try:
        if len(files) == 1:
            return Tokenizer.from_file(str(files[0]))
        found = Tokenizer(models.BPE.from_file(*map(str, files)))
    except Exception as error:  # the package raises nothing narrower
        raise CheckpointError(f"{files[0]} is damaged or is not a byte-level vocabulary.") from error
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    found.add_special_tokens([*SPECIAL, AddedToken(MASK, lstrip=True)])
    return found
