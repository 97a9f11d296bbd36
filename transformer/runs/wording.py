"""The words of a model: texts as ids and pieces, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from transformer.config import ModelConfig
from transformer.interventions import InterventionError, Token
from transformer.text.typed import PiecedText
from transformer.text.vocabulary import Vocabulary
from transformer.text.words import NO_PIECE, UNK, unknown_text

MAX_SOURCE_TOKENS = 1024


class InputError(ValueError):
    """A text that cannot be translated; the message says why in one sentence."""


class Wording:
    """A model's vocabulary with its limits. Nothing in it changes, so threads may share it."""

    def __init__(
        self,
        tokenizer: Vocabulary,  # the vocabulary
        config: ModelConfig,  # the model's config
    ) -> None:
        self.tokenizer, self.config = tokenizer, config
        self._pieces = tokenizer.pieces(range(config.n_target_pieces))
        self._source_pieces = tokenizer.source_pieces(range(config.vocab_size))

    def read(self, text: str) -> str:
        """The text as the model reads it."""
        return self.tokenizer.read(text)

    def cut(self, text: str) -> PiecedText:
        """A source text in pieces, without special tokens; raises as ``Translator.ids``."""
        found = self.tokenizer.cut(text)
        ids, languages = found.ids, self.config.language_pieces
        named = bool(ids) and self._source_pieces[ids[0]] in languages
        if self.config.names_pair and found.start is None:
            raise InputError(
                f"This model knows {len(languages)} languages; begin the text with the one that it is in and "
                f"the one that you want, such as {' '.join(languages[:2])}."
            )
        if len(languages) > 1 and not named:
            raise InputError(
                f"This model translates into {len(languages)} languages; begin the text with the one "
                f"you want, such as {' or '.join(languages[:3])}."
            )
        self._check_length(ids[named:], "text")
        return found

    def cut_target(self, text: str) -> PiecedText:
        """A translation in pieces, without special tokens; raises as ``Translator.target_ids``."""
        found = self.tokenizer.cut_target(text)
        self._check_length(found.ids, "translation")
        return found

    def _check_length(self, ids: tuple[int, ...], what: str) -> None:
        if not ids:
            raise InputError(f"The {what} is empty; type a sentence.")
        tokens, positions = len(ids) + 1, self.config.max_positions
        if tokens > MAX_SOURCE_TOKENS:
            raise InputError(
                f"The {what} has {tokens:,} tokens; shorten it to at most {MAX_SOURCE_TOKENS:,}."
            )
        if tokens > positions:
            raise InputError(
                f"The {what} has {tokens:,} tokens, but this model has {positions:,} positions; shorten it."
            )

    def source_pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of source ids, ``▁`` kept."""
        return _named(self._source_pieces, ids)

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of target ids, ``▁`` kept."""
        return _named(self._pieces, ids)

    def text(self, ids: Iterable[int]) -> str:
        """The plain text of ids, without special tokens."""
        return self.tokenizer.decode(ids).strip()

    def token_id(self, token: Token) -> int:
        """The id of a target token.

        Raises:
            InterventionError: The vocabulary has no such token.
        """
        return _known(token, self._target_ids, len(self._pieces), "target")

    def source_id(self, token: Token) -> int:
        """The id of a source token.

        Raises:
            InterventionError: The vocabulary has no such token.
        """
        return _known(token, self._source_ids, len(self._source_pieces), "source")

    @cached_property
    def _target_ids(self) -> dict[str, int]:
        return _first_ids(self._pieces)

    @cached_property
    def _source_ids(self) -> dict[str, int]:
        return _first_ids(self._source_pieces)


def _first_ids(pieces: Iterable[str]) -> dict[str, int]:
    """Ids by piece; of several ids with one piece, the first."""
    found: dict[str, int] = {}
    for token_id, piece in enumerate(pieces):
        found.setdefault(piece, token_id)
    return found


def _known(token: Token, ids: dict[str, int], count: int, side: str) -> int:
    if isinstance(token, str):
        name = token if unknown_text(token) is None else UNK
        if name in ids:
            return ids[name]
        raise InterventionError(f"The model's {side} vocabulary has no token {token!r:.60}.")
    if token >= count:
        raise InterventionError(
            f"The model's {side} vocabulary has {count:,} tokens; there is no id {token}."
        )
    return token


def _named(pieces: Sequence[str], ids: Iterable[int]) -> tuple[str, ...]:
    return tuple(pieces[each] if each < len(pieces) else NO_PIECE for each in ids)
