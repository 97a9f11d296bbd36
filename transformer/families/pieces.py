"""The pieces of published vocabularies: what splits a text, and a table of ids.

Two libraries split: sentencepiece, with a table of ids beside it; and tokenizers (`whole.py`),
whose one file holds both. Special pieces and added tokens stay whole wherever they stand in a text,
as in transformers.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from transformer.families.whole import Whole
from transformer.storage.files import (
    CheckpointError,
    check_values,
    check_vocabulary,
    read_json,
)
from transformer.text.tokenizer import Pieces, TokenizerError, Vocabulary, sentencepiece_model
from transformer.text.typed import without_surrogates
from transformer.text.words import BOS, EOS, PAD, SPACE, UNK, is_language

WHOLE_FILE = "tokenizer.json"
WORDS_FILE = "vocab.txt"
"""Of BERT's older models, the pieces, a line each."""
SETTINGS_FILE, ADDED_FILE = "tokenizer_config.json", "added_tokens.json"
SPECIAL = BOS, PAD, EOS, UNK
"""The first four pieces in fairseq's order; sentencepiece has three others, in another order."""
MOST_DIGITS = 10
"""An id of more digits is none."""
_TEXTLESS = re.compile(r"<extra_id_\d+>|<mask>")
_HEAD_BYTES = 2**20
"""Added tokens stand before the pieces of a ``tokenizer.json``: so far into the file they are
looked for."""


def pieces_by_id(ids: Mapping[str, int], size: int, spelling: Callable[[str], str]) -> list[str]:
    """The piece of each id, as a page can show it."""
    names = [""] * size
    for piece, number in ids.items():
        if 0 <= number < size:
            names[number] = piece
    spelled = enumerate(map(spelling, names))
    return [name or f"<unused {number}>" for number, name in spelled]


class SentencePieces(Pieces):
    """Pieces of a sentencepiece model."""

    def __init__(
        self,
        processor: Any,  # of the sentencepiece model
        directory: Path,  # of its file, and of those of added tokens
        ids: Mapping[str, int],
        size: int,
        special: Collection[str],
        *,
        lead: str = r"(?!)",  # what is a piece of its own at the start of a text
    ) -> None:
        self.processor = processor
        self._lead = re.compile(lead, re.DOTALL)
        added, marked = added_tokens(directory, ids, size)
        self.special = frozenset({*special, *marked})
        known = {**ids, **added}
        textless = {*filter(self._lead.fullmatch, known), *(self.special & known.keys())}
        named = pieces_by_id(known, size, without_surrogates)
        super().__init__(known, named, [known[piece] for piece in textless])
        self._whole = self.special | added.keys()
        longest = sorted(self._whole, key=lambda piece: (-len(piece), piece))
        self._parts = re.compile(f"({'|'.join(map(re.escape, longest))})")

    def split_by(self, path: Path) -> SentencePieces:
        """The same pieces, into which the sentencepiece model of another file splits texts."""
        pieces = copy.copy(self)
        (processor, _) = read_model(path)
        pieces.processor = processor
        return pieces

    def split(self, text: str) -> Iterator[tuple[int, str, int, int]]:
        unknown, end = self.unknown, 0
        for part in filter(None, self._parts.split(text)):
            begin = end
            end = end + len(part)
            if part in self._whole:
                yield self.ids.get(part, unknown), part, begin, end
                continue
            if lead := self._lead.match(part):
                yield self.ids.get(lead[0], unknown), lead[0], begin, begin + len(lead[0])
                begin += len(lead[0])
            read = self.processor.EncodeAsOffsetMapping(text[begin:end])
            for piece, (first, last) in zip(read["pieces"], read["offsets"], strict=True):
                yield self.ids.get(piece, unknown), piece, begin + first, begin + last

    def decode(self, ids: Iterable[int]) -> str:
        pieces = (self.pieces[number] for number in ids)
        text = self.processor.DecodePieces([piece for piece in pieces if piece not in self.special])
        return str(text).replace(SPACE, " ").strip()


class WholePieces(Pieces):
    """Pieces of a tokenizer of the library tokenizers."""

    def __init__(self, tokenizer: Whole, size: int, special: Collection[str]) -> None:
        """CheckpointError, naming the file, if a special piece is missing or a piece has no row."""
        ids = tokenizer.ids()
        check_pieces(tokenizer.path, special, ids, size)
        tokenizer.add(
            [*special, *filter(is_language, ids)], special=True
        )  # which have ids, and stay whole
        tokenizer.probe()
        self._tokenizer = tokenizer
        self.as_typed = tokenizer.in_bytes  # it has pieces for line breaks and blanks
        spelling = byte_name if tokenizer.in_bytes else without_surrogates
        textless = [number for number in tokenizer.special_ids() if number < size]
        super().__init__(ids, pieces_by_id(ids, size, spelling), textless)

    def split(self, text: str) -> Iterator[tuple[int, str, int, int]]:
        at, before = 0, ""
        # languages first: the library would take the space behind one for a piece
        while (word := text[at:].split(" ", 1)[0]) in self.ids and is_language(word):
            yield self.ids[word], word, at, at + len(word)
            at += len(word) + 1
        read = self._tokenizer.encode(text[at:])
        for number, (begin, end) in zip(read.ids, read.offsets, strict=True):
            piece = self.pieces[number]
            begin = at + begin
            end = at + end
            if number == self.unknown:  # named by its text, as sentencepiece does
                first = begin == at or " " in text[begin - 1 : begin + 1]
                piece = SPACE * (first and before != SPACE) + text[begin:end].strip()
            yield number, piece, begin, end
            before = piece

    def decode(self, ids: Iterable[int]) -> str:
        return self._tokenizer.decode([*ids]).strip()

    def check_frame(self, before: Collection[str]) -> None:
        """CheckpointError if the file puts other tokens around a text than one of these pieces and
        `</s>`."""
        bare, framed = (self._tokenizer.encode("a", framed).ids for framed in (False, True))
        firsts = [[self.ids[piece]] for piece in before] or [[]]
        ends = [[*first, *bare, self.ids[EOS]] for first in firsts]
        if framed != bare and framed not in ends:
            raise CheckpointError(
                f"{self._tokenizer.path} puts other tokens around a text than models of this "
                "family read; it is not supported."
            )


def languages_of(pieces: Pieces, mark: str = "") -> tuple[str, ...]:
    """The pieces that name a language and begin with a mark, in the order of their ids."""
    languages = (piece for piece in pieces.ids if piece.startswith(mark) and is_language(piece))
    return tuple(sorted(languages, key=pieces.ids.__getitem__))


def read_pieces(
    path: Path,  # of the sentencepiece model
    size: int,  # rows of embeddings
    order: Callable[
        [list[str]], dict[str, int]
    ],  # its pieces → the ids of all, of those behind them, too
    behind: str,  # what stands behind them, for messages
    needed: Collection[str],  # pieces that there must be
    pair: bool = False,  # whether a text begins with a language
) -> Pieces:
    """Pieces of a sentencepiece model or, where there is none, of a ``tokenizer.json``.

    CheckpointError if a file is missing, damaged or too large, or there are more pieces than rows.
    """
    if (path.parent / WHOLE_FILE).is_file() and not path.is_file():
        pieces = whole_pieces(path.parent, size, needed)
        pieces.check_frame(languages_of(pieces) if pair else ())
        return pieces
    processor, stored = read_model(path)
    ids = order(stored)
    check_pieces(path, needed, ids, size, f" with its {behind}")
    textless = filter(_TEXTLESS.fullmatch, ids)
    special = {*needed, *textless, *filter(is_language, ids)}
    return SentencePieces(processor, path.parent, ids, size, special)


def check_pieces(
    path: Path, needed: Iterable[str], ids: Mapping[str, int], size: int, what: str = ""
) -> None:
    """CheckpointError if a vocabulary lacks a piece that its family needs, or has more pieces than
    rows."""
    if missing := [piece for piece in needed if piece not in ids]:
        raise CheckpointError(
            f"{path} has no piece {missing[0]}, so it is not the vocabulary of such a model."
        )
    if (count := max(ids.values()) + 1) > size:
        raise CheckpointError(
            f"{path} has {count:,} pieces{what}, but config.json has {size:,} rows for them; "
            "the files belong to different models."
        )


def whole_pieces(directory: Path, size: int, needed: Collection[str]) -> WholePieces:
    """The pieces of a ``tokenizer.json``; CheckpointError if it is damaged, too large, or another
    model's."""
    return WholePieces(Whole.read(directory / WHOLE_FILE), size, needed)


def settings_of(directory: Path, name: str = SETTINGS_FILE) -> dict[str, Any]:
    """The content of ``tokenizer_config.json``, or of another file beside it; empty if there is
    none."""
    path = directory / name
    return read_json(path) if path.exists() else {}


def named_by(entry: object) -> str | None:
    """The piece that an entry of settings names, by itself or with its rules; None if it names
    none."""
    piece = entry
    if isinstance(entry, dict):
        piece = entry.get("content")
    if isinstance(piece, str):
        return piece
    return None


def added_tokens(
    directory: Path, ids: Mapping[str, int], size: int
) -> tuple[dict[str, int], set[str]]:
    """Tokens that somebody added to a vocabulary, with their ids; and which of them no text is
    written of.

    They stand in ``tokenizer.json``, in ``added_tokens.json`` and twice in
    ``tokenizer_config.json``; the last file counts. One without an id gets the next. Those without
    a row are left out.
    """
    settings = settings_of(directory)
    numbers = settings_of(directory, ADDED_FILE)
    entries = _head(directory / WHOLE_FILE)
    entries += [{"content": piece, "id": number} for piece, number in numbers.items()]
    decoder = settings.get("added_tokens_decoder")
    for number, entry in decoder.items() if isinstance(decoder, dict) else ():
        if isinstance(entry, dict) and number.isdecimal() and len(number) < MOST_DIGITS:
            entries.append(entry | {"id": int(number)})
    for name in ("additional_special_tokens", "extra_special_tokens"):
        tokens = settings.get(name)
        tokens = [*tokens.values()] if isinstance(tokens, dict) else tokens
        for token in tokens if isinstance(tokens, list) else ():
            entries.append(
                (token if isinstance(token, dict) else {"content": token}) | {"special": True}
            )
    added = dict[str, int]()
    special = set[str]()
    last = max(ids.values(), default=-1)
    for entry in entries:
        piece = entry.get("content")
        if not isinstance(piece, str) or not piece:
            continue
        known = added.get(piece, ids.get(piece))
        number = entry.get("id", max(last, *added.values(), -1) + 1 if known is None else known)
        if type(number) is int and 0 <= number < size:
            added[piece] = number
            special |= {piece} if entry.get("special") or is_language(piece) else set()
    return added, special


def _head(path: Path) -> list[dict[str, Any]]:
    """The added tokens of a ``tokenizer.json``, without its pieces; none if they cannot be read."""
    if not path.is_file():
        return []
    with path.open("rb") as file:
        rest = (
            file.read(_HEAD_BYTES)
            .decode("utf-8", "ignore")
            .partition('"added_tokens":')[2]
            .lstrip()
        )
    try:
        entries = json.JSONDecoder().raw_decode(rest)[0]
        check_values(entries)
    except (ValueError, RecursionError):
        return []
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


def proposed(directory: Path, vocabulary: Vocabulary, start: int | None) -> tuple[str, ...]:
    """The languages of a vocabulary; those first that the model's own files name, source before
    target.

    ``start`` is the id of the token that the files force at the start of the output.
    """
    settings = settings_of(directory)
    languages = vocabulary.languages
    codes = {re.sub(r"^(__|>>|<2)|(__|<<|>)$", "", piece): piece for piece in languages}
    codes |= {piece: piece for piece in languages}
    named = (settings.get(name) for name in ("src_lang", "tgt_lang", "source_lang", "target_lang"))
    source, target, *older = (codes.get(name) if isinstance(name, str) else None for name in named)
    forced = None if start is None else vocabulary.target.pieces[start]
    target = target or older[1] or (forced if forced in languages else None)
    source = (source or older[0]) if vocabulary.pair else None
    if vocabulary.pair and target and not source:
        source = next((piece for piece in languages if piece != target), None)
    return tuple(dict.fromkeys(piece for piece in (source, target, *languages) if piece))


def read_model(path: Path) -> tuple[Any, list[str]]:
    """A sentencepiece model and its pieces; CheckpointError if it is missing, too large or
    damaged."""
    if not path.is_file():
        raise CheckpointError(
            f"{path.parent} has no {path.name}, so it is not a complete model directory."
        )
    check_vocabulary(path)
    try:
        return sentencepiece_model(path.read_bytes(), path.name)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    except TokenizerError as error:
        raise CheckpointError(str(error)) from error


_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = sorted({*range(0x100)} - {*_VISIBLE})
_BYTES = {chr(byte): byte for byte in _VISIBLE} | {
    chr(0x100 + at): byte for at, byte in enumerate(_OTHERS)
}
"""The byte for which a letter stands in a file: itself if it is visible, else one from U+0100
on."""
_BLANK = next(letter for letter, byte in _BYTES.items() if byte == ord(" "))
_PLAIN = re.compile(f"[!-~{_BLANK}]*")
"""Letters that stand for themselves, and for a space."""
_HIDDEN = re.compile("[\x00-\x1f\x7f-\xa0\xad\udc80-\udcff]")
"""What a byte-level piece cannot show: control characters, and bytes that are no whole
character."""


def byte_name(token: str) -> str:
    """The name of a token of a byte-level vocabulary: `Ġhouse` is `▁house`; bytes that are no whole
    character are named by their codes, such as `<0xF0><0x9F>`."""
    if _PLAIN.fullmatch(token):  # nearly every piece
        return token.replace(_BLANK, SPACE)
    if not set(token) <= _BYTES.keys():
        return token  # a special one
    text = bytes(_BYTES[letter] for letter in token).decode("utf-8", "surrogateescape")
    return _HIDDEN.sub(_codes, text).replace(" ", SPACE)


def _codes(hidden: re.Match[str]) -> str:
    return "".join(f"<0x{byte:02X}>" for byte in hidden[0].encode("utf-8", "surrogateescape"))
