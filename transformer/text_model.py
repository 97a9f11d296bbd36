"""A network with its vocabulary: texts as ids and pieces, and back; and where it computes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import torch

from transformer.config import ModelConfig
from transformer.decoding import FREE, AnyModel, SearchRules
from transformer.devices import FULL, on_cpu
from transformer.interventions import HeadMeans, InterventionError, Token
from transformer.text.brief import Brief
from transformer.text.typed import PiecedText
from transformer.text.vocabulary import Vocabulary
from transformer.text.words import NO_PIECE, UNK, unknown_text

T = TypeVar("T")
Model = TypeVar("Model", bound=AnyModel)
MAX_SOURCE_TOKENS = 1024
_leaving = threading.Lock()


class InputError(ValueError):
    """A text that cannot be translated; the message says why in one sentence."""


class TextModel(Brief, Generic[Model]):
    """A network with its vocabulary, base of ``Translator`` and ``TextGenerator``.

    Safe to share between threads: nothing in it changes but where it computes. A GPU that has no memory left
    is left for the CPU; those that compute meanwhile end on the GPU.
    """

    config: ModelConfig
    NO_MEANS: ClassVar[str]
    TOO_LONG: ClassVar[str]
    CUT: ClassVar[str]
    ENDED: ClassVar[str]
    """Sentences for the reader of a run: no mean outputs of heads, longer than training, cut by the
    limit, ended before a change could act."""

    def __init__(
        self,
        model: Model,
        tokenizer: Vocabulary,
        *,
        name: str = "model",
        heads: dict[str, Any] | None = None,  # contents of ``heads.json``
        card: str = "",  # the model card, Markdown
        rules: SearchRules = FREE,  # the model's own rules for the search
        notes: tuple[str, ...] = (),  # sentences for the reader of every run
        means: HeadMeans | None = None,  # mean outputs of the heads, for ``ablate(…, by="mean")``
    ) -> None:
        self.model, self.config = model, model.config
        model.eval().requires_grad_(False)
        self.tokenizer, self.name, self.heads, self.card = tokenizer, name, heads, card
        self.rules, self.notes, self.means = rules, notes, means
        self._pieces = tokenizer.pieces(range(self.config.n_target_pieces))
        self._source_pieces = tokenizer.source_pieces(range(self.config.vocab_size))

    @property
    def device(self) -> torch.device:
        """The device on which the model computes."""
        return self.model.embedding.weight.device

    def answered(self, answer: Callable[[], Iterator[T]]) -> Iterator[T]:
        """Parts of an answer; all of them again, made on the CPU, if the GPU has no memory left."""
        try:
            yield from answer()
        except torch.OutOfMemoryError:
            if self.device.type == "cpu":
                raise
            self.leave_gpu()
            yield from answer()

    def computed(self, compute: Callable[[], T]) -> T:
        """What a function computes; computed again on the CPU if the GPU has no memory left."""
        return next(self.answered(lambda: iter((compute(),))))

    def leave_gpu(self) -> None:
        """Computes on the CPU from now on; the notes of each answer say so."""
        with _leaving:
            if self.device.type != "cpu":
                model = on_cpu(self.model)
                self.notes = (*self.notes, FULL)  # before the model: who takes that one has the note
                self.model = model

    def ids(self, text: str) -> tuple[int, ...]:
        """Ids of a source or a prompt, without special tokens."""
        raise NotImplementedError

    def limit(self, given_tokens: int, max_length: int | None = None) -> int:
        """Most tokens of an output, for a number of source tokens, or of tokens of a prompt."""
        raise NotImplementedError

    def cut(self, text: str) -> PiecedText:
        """A source text in pieces, without special tokens; raises as ``Translator.ids``."""
        cut = self.tokenizer.cut(text)
        languages = self.config.language_pieces
        named = bool(cut.ids) and self._source_pieces[cut.ids[0]] in languages
        if languages and self.config.names_pair and cut.start is None:
            raise InputError(
                f"This model knows {len(languages)} languages; begin the text with the one that it is in and "
                f"the one that you want, such as {' '.join(languages[:2])}."
            )
        if len(languages) > 1 and not named:
            raise InputError(
                f"This model translates into {len(languages)} languages; begin the text with the one "
                f"you want, such as {' or '.join(languages[:3])}."
            )
        self._check_length(cut.ids[named:], "text")
        return cut

    def cut_target(self, text: str) -> PiecedText:
        """A translation in pieces, without special tokens; InputError if it is empty or too long."""
        cut = self.tokenizer.cut_target(text)
        self._check_length(cut.ids, "translation")
        return cut

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
        return tuple(self._source_pieces[i] if i < len(self._source_pieces) else NO_PIECE for i in ids)

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of target ids, ``▁`` kept."""
        return tuple(self._pieces[i] if i < len(self._pieces) else NO_PIECE for i in ids)

    def text(self, ids: Iterable[int]) -> str:
        """The plain text of ids, without special tokens."""
        return self.tokenizer.decode(ids).strip()

    def token_id(self, token: Token) -> int:
        """The id of a target token; InterventionError if the vocabulary has no such token."""
        return _id_of(token, self._target_ids, len(self._pieces), "target")

    def source_id(self, token: Token) -> int:
        """The id of a source token; InterventionError if the vocabulary has no such token."""
        return _id_of(token, self._source_ids, len(self._source_pieces), "source")

    @cached_property
    def _target_ids(self) -> dict[str, int]:
        return _first_ids(self._pieces)

    @cached_property
    def _source_ids(self) -> dict[str, int]:
        return _first_ids(self._source_pieces)


def _first_ids(pieces: Sequence[str]) -> dict[str, int]:
    """Ids by piece; of several ids with one piece, the first."""
    return {piece: len(pieces) - 1 - i for i, piece in enumerate(reversed(pieces))}


def _id_of(token: Token, ids: dict[str, int], count: int, side: str) -> int:
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
