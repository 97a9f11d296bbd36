"""The library tokenizers: the one place that calls it, and what a file may ask of it.

Its panics are no Exceptions, so that nothing would catch them: here each becomes a sentence. Rules
of a file that would make much text of little, or whose patterns try for ever, are refused before a
text is read.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.families.family import Json
from transformer.families.patterns import tries_for_ever
from transformer.storage.files import MAX_TOKENIZER_BYTES, CheckpointError, check_vocabulary

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

MOST_GROWTH = 1024
"""Characters that the rules of a file may make of one; a published vocabulary stays below 100."""
MOST_CHARACTERS = 2**23
"""Characters that a text may become by these rules; each may be a token, of some 200 bytes."""
MOST_STEPS = 64
"""Rules of a kind, one after another."""
_GROWTH = {
    "NFC": 3,
    "NFD": 4,
    "NFKC": 18,
    "NFKD": 18,
    "Lowercase": 3,
    "BertNormalizer": 12,
    "ByteLevel": 4,
}
"""The most characters that a rule of a kind makes of one; of all others, which have no texts,
one."""
_PROBES = "a", chr(0x378), " 1é-Z\n", f"{chr(0x65E5)} ½ {chr(0x1F469)}{chr(0x200D)}"
"""Texts that every vocabulary reads in some way; the second has a character that none knows."""

CONTINUES = "##"
"""What pieces of BERT's vocabularies begin with that continue a word."""
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{%s}"
_SIGNS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True)
class PreTokenizer:
    """What splits a text before byte-level pieces are made of it."""

    pattern: str = ""  # each match is split for itself; empty for GPT-2's rule
    single_digits: bool = False
    composed: bool = False  # whether the text is made NFC first
    whole_first: bool = False  # whether a part that is a piece is not split
    begins: bool = False  # whether texts begin with a start token if the file does not say


PRE_TOKENIZERS = {
    "default": PreTokenizer(),
    "gpt-2": PreTokenizer(),
    "smollm": PreTokenizer(single_digits=True),
    "llama-bpe": PreTokenizer(_WORDS % "1,3" + _SIGNS, whole_first=True, begins=True),
    "qwen2": PreTokenizer(_WORDS % "1" + _SIGNS, composed=True),
}
"""Those whose rule is known, by the name that a file gives."""


class Whole:
    """A tokenizer of the library; every method raises a CheckpointError for what the library cannot
    do."""

    def __init__(self, path: Path, tokenizer: Tokenizer) -> None:
        """Takes a tokenizer that was read from a file; CheckpointError if its rules are refused."""
        self.path, self._tokenizer = path, tokenizer
        for rules in (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder):
            self._check_patterns(_steps(rules))
        read = *_steps(tokenizer.normalizer), *_steps(tokenizer.pre_tokenizer)
        self._growth = _growth(read)
        written = _growth(_steps(tokenizer.decoder))
        if (most := max(self._growth, written)) > MOST_GROWTH:
            raise CheckpointError(
                f"{path} may make {most:,} characters of one; only vocabularies that make at most "
                f"{MOST_GROWTH:,} are supported."
            )
        with self._answers():
            tokenizer.no_truncation()
            tokenizer.no_padding()
            if getattr(tokenizer.model, "dropout", None):
                tokenizer.model.dropout = None  # a text is always read alike

    @classmethod
    def read(cls, path: Path) -> Whole:
        """Reads a ``tokenizer.json``; CheckpointError if it is damaged, too large, or refused."""
        from tokenizers import Tokenizer

        check_vocabulary(path, MAX_TOKENIZER_BYTES)
        with _panics(f"{path} is damaged or is not a vocabulary."):
            tokenizer = Tokenizer.from_file(str(path))
        return cls(path, tokenizer)

    @classmethod
    def byte_level(cls, ids: Path, merges: Path) -> Whole:
        """Reads the two files of a byte-level vocabulary; CheckpointError if one is damaged or too
        large."""
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers

        for path in (ids, merges):
            check_vocabulary(path)
        with _panics(f"{ids} is damaged or is not a byte-level vocabulary."):
            tokenizer = Tokenizer(models.BPE.from_file(str(ids), str(merges)))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        return cls(ids, tokenizer)

    @classmethod
    def of_merges(
        cls,
        path: Path,  # of the file, for messages
        pieces: Sequence[str],  # in the order of their ids
        merges: Sequence[tuple[str, str]],  # first those that are made first
        rule: PreTokenizer,
        *,
        special: Sequence[str],  # pieces that no text contains
        added: Sequence[str],  # others that stay whole wherever they stand
    ) -> Whole:
        """Byte-level pieces; CheckpointError if a merge is of pieces that are not there."""
        from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
        from tokenizers import pre_tokenizers as steps

        ids = {piece: number for number, piece in enumerate(pieces)}
        with _panics(f"{path} has merges of pieces that it lacks."):
            model = models.BPE(vocab=ids, merges=list(merges), ignore_merges=rule.whole_first)
        tokenizer = Tokenizer(model)
        split: list[Any] = []
        if rule.single_digits:
            split.append(steps.Digits(individual_digits=True))
        if rule.pattern:
            split.append(steps.Split(Regex(rule.pattern), "isolated"))
        split.append(steps.ByteLevel(add_prefix_space=False, use_regex=not rule.pattern))
        tokenizer.pre_tokenizer = steps.Sequence(split)
        tokenizer.decoder = decoders.ByteLevel()
        if rule.composed:
            tokenizer.normalizer = normalizers.NFC()
        with _panics(f"{path} has special pieces that its library refuses."):
            tokenizer.add_special_tokens([AddedToken(piece, normalized=False) for piece in special])
            tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in added])
        return cls(path, tokenizer)

    @classmethod
    def word_pieces(cls, path: Path, pieces: Sequence[str], unknown: str, settings: Json) -> Whole:
        """The pieces of BERT's ``vocab.txt``, in the order of their ids, read as the settings say;
        CheckpointError if one of them is of another kind."""
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

        ids = {piece: number for number, piece in enumerate(pieces)}
        with _panics(f"{path} and the settings beside it describe no vocabulary."):
            tokenizer = Tokenizer(models.WordPiece(vocab=ids, unk_token=unknown))
            tokenizer.normalizer = normalizers.BertNormalizer(
                clean_text=True,
                handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
                strip_accents=settings.get("strip_accents"),
                lowercase=settings.get("do_lower_case", True),
            )
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece(prefix=CONTINUES)
        return cls(path, tokenizer)

    @property
    def in_bytes(self) -> bool:
        """Whether its pieces spell bytes."""
        return type(self._tokenizer.decoder).__name__ == "ByteLevel"

    @property
    def continues(self) -> str:
        """What pieces begin with that continue a word, if all others begin one; else empty."""
        if type(self._tokenizer.model).__name__ != "WordPiece":
            return ""
        return str(self._tokenizer.model.continuing_subword_prefix)

    @property
    def unknown(self) -> int | None:
        """The id of the piece that stands for what has none; None if everything has pieces."""
        model = json.loads(self._tokenizer.model.__getstate__())
        number: int | None = model.get("unk_id")
        if (piece := model.get("unk_token")) is not None:
            number = self._tokenizer.token_to_id(piece)
        return number

    def add(self, pieces: Iterable[str], special: bool, after_spaces: bool = False) -> None:
        """Adds pieces that stay whole wherever they stand; ``after_spaces`` takes those before
        them, too."""
        from tokenizers import AddedToken

        added = (
            [AddedToken(piece, lstrip=True, special=special) for piece in pieces]
            if after_spaces
            else [*pieces]
        )
        with self._answers():
            (self._tokenizer.add_special_tokens if special else self._tokenizer.add_tokens)(added)

    def ids(self) -> dict[str, int]:
        """The id of every piece."""
        with self._answers():
            return self._tokenizer.get_vocab(with_added_tokens=True)

    def special_ids(self) -> list[int]:
        """The ids of pieces that no text contains."""
        with self._answers():
            added = self._tokenizer.get_added_tokens_decoder().items()
            return [number for number, token in added if token.special]

    def described(self) -> Json:
        """Its rules and pieces, as a ``tokenizer.json`` has them."""
        with self._answers():
            written = self._tokenizer.to_str()
        values: Json = json.loads(written)
        return values

    def id_of(self, piece: str) -> int | None:
        """The id of a piece; None if there is no such piece."""
        return self._tokenizer.token_to_id(piece)

    def probe(self) -> None:
        """Reads and writes a few short texts; CheckpointError if it cannot."""
        with _panics(f"{self.path} has no piece for what it cannot spell."):
            for text in _PROBES:
                self._tokenizer.decode(self._tokenizer.encode(text).ids)

    def encode(self, text: str, framed: bool = False, second: str | None = None) -> Encoding:
        """The ids of a text and where each stands, with the tokens around it if ``framed``, and
        with a second text behind it, if there is one."""
        if len(text) * self._growth > MOST_CHARACTERS:
            raise CheckpointError(
                f"This text has {len(text):,} characters; with the rules of {self.path}, only "
                f"texts of at most {MOST_CHARACTERS // self._growth:,} are read."
            )
        with self._answers():
            return self._tokenizer.encode(text, second, add_special_tokens=framed)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without special tokens."""
        with self._answers():
            return str(self._tokenizer.decode([*ids], skip_special_tokens=True))

    @contextmanager
    def _answers(self) -> Iterator[None]:
        with _panics(
            f"{self.path} has rules at which its library stopped, so it is not supported."
        ):
            yield

    def _check_patterns(self, steps: Collection[Mapping[str, Any]]) -> None:
        """CheckpointError if there are too many rules, or a pattern may try for ever."""
        if len(steps) > MOST_STEPS:
            raise CheckpointError(
                f"{self.path} has {len(steps):,} rules one after another; at most {MOST_STEPS} are "
                "supported."
            )
        for step in steps:
            if (pattern := _pattern(step)) is not None and tries_for_ever(pattern):
                raise CheckpointError(
                    f"{self.path} has the pattern {pattern!r:.80}, which may take for ever on a "
                    "short text; it is not supported."
                )


@contextmanager
def _panics(sentence: str) -> Iterator[None]:
    """Says in a sentence what the library raises, which is nothing narrower than Exception, or a
    panic."""
    try:
        yield
    except Exception as error:
        raise CheckpointError(sentence) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust, under no name that can be imported
            raise
        raise CheckpointError(sentence) from error


def _steps(rules: Any) -> tuple[dict[str, Any], ...]:
    """The rules of a normaliser, of what splits before the model, or of a decoder, in their
    order."""
    if rules is None:
        return ()
    with _panics("A rule of a vocabulary cannot be read."):
        values = json.loads(rules.__getstate__())
    lists = (values.get(name) for name in ("normalizers", "pretokenizers", "decoders"))
    return tuple(next((steps for steps in lists if isinstance(steps, list)), [values]))


def _pattern(step: Mapping[str, Any]) -> str | None:
    """The regular expression of a rule, if it has one."""
    pattern = step.get("pattern")
    return pattern.get("Regex") if isinstance(pattern, dict) else None


def _growth(steps: Iterable[Mapping[str, Any]]) -> int:
    """The most characters that some rules make of one."""
    growth = 1
    for step in steps:
        kind = step.get("type")
        if kind == "Replace":
            # an empty pattern, and one that may match nothing, is found before each character, too
            may_be_empty = not step["pattern"].get("String")
            growth *= max(1, len(step["content"]) + may_be_empty)
        elif kind == "Prepend":
            growth *= 1 + len(step["prepend"])
        elif kind == "Precompiled":
            growth *= _longest(step["precompiled_charsmap"])
        else:
            growth *= _GROWTH.get(str(kind), 1)
    return growth


def _longest(table: str) -> int:
    """Characters of the longest text in sentencepiece's table: the bytes of a trie, after their
    number, and texts that end in a zero byte."""
    content = base64.b64decode(table)
    first = 4 + int.from_bytes(content[:4], "little")
    texts = content[first:].decode("utf-8", "replace").split("\0")
    return max(1, *map(len, texts))
