"""A network with its vocabulary: texts as ids and pieces, and back; and where it computes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import torch

from transformer.config import ModelConfig
from transformer.decoding import FREE, AnyModel, SearchRules
from transformer.devices import FULL, on_cpu
from transformer.interventions import HeadMeans, InterventionError, Token
from transformer.model import LanguageModel
from transformer.text.brief import Brief
from transformer.text.kinds import is_whole
from transformer.text.tokenizer import TokenizedText, Vocabulary
from transformer.text.typed import CleanText
from transformer.text.words import NO_PIECE, UNK, unknown_text

T = TypeVar("T")
Tokens = str | Sequence[int] | Sequence[str]
"""A text, or all of its tokens as ids or pieces."""
MAX_SOURCE_TOKENS = 1024
LENGTH = 60
"""Most tokens of a language model's text if the caller gives no number."""
_leaving = threading.Lock()


class InputError(ValueError):
    """A text that cannot be translated; the message says why in one sentence."""


class TextModel(Brief):
    """A network with its vocabulary, base of ``Translator``.

    A language model reads no source: what stands for one is its prompt, the beginning of the output. Safe to
    share between threads: nothing in it changes but where it computes. A GPU that has no memory left is left
    for the CPU; those that compute meanwhile end on the GPU.
    """

    model: Any  # an ``EncoderDecoder`` or a ``LanguageModel``, which the caller knows
    config: ModelConfig

    def __init__(
        self,
        model: AnyModel,
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
        self.continues = isinstance(model, LanguageModel)
        self.tokenizer, self.name, self.heads, self.card = tokenizer, name, heads, card
        self.rules, self.notes, self.means = rules, notes, means
        self._pieces = {
            "source": tokenizer.source.named(range(self.config.vocab_size)),
            "target": tokenizer.pieces(range(self.config.n_target_pieces)),
        }

    @property
    def device(self) -> torch.device:
        """The device on which the model computes."""
        device: torch.device = self.model.embedding.weight.device
        return device

    def computed(self, compute: Callable[[], T]) -> T:
        """What a function computes; computed again on the CPU if the GPU has no memory left."""
        try:
            return compute()
        except torch.OutOfMemoryError:
            if not self.leave_gpu():
                raise
            return compute()

    def leave_gpu(self) -> bool:
        """Whether the model was on a GPU; it computes on the CPU from now on, as each answer's notes say."""
        with _leaving:
            left = self.device.type != "cpu"
            if left:
                model = on_cpu(self.model)
                self.notes = (*self.notes, FULL)  # before the model: who takes that one has the note
                self.model = model
        return left

    def cut(self, text: str, side: str = "source") -> TokenizedText:
        """A source, a prompt, or an output ("target"), in pieces, without special tokens.

        InputError if it has too many tokens, or none (a prompt may); and a source if it does not name a
        target language although the model needs one.
        """
        written = self.continues or side == "target"
        cut = self.tokenizer.target.cut(text) if written else self.tokenizer.cut(text)
        if not cut.ids and self.continues and side == "source":
            return cut
        languages = () if written else self.config.language_pieces
        named = bool(languages and cut.ids) and self._pieces["source"][cut.ids[0]] in languages
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
        what = "translation" if side == "target" and not self.continues else "text"
        tokens, positions = len(cut.ids) - named + 1, self.config.max_positions
        for wrong, said in (
            (tokens == 1, "is empty; type a sentence."),
            (
                tokens > MAX_SOURCE_TOKENS,
                f"has {tokens:,} tokens; shorten it to at most {MAX_SOURCE_TOKENS:,}.",
            ),
            (
                tokens > positions,
                f"has {tokens:,} tokens, but this model has {positions:,} positions; shorten it.",
            ),
        ):
            if wrong:
                raise InputError(f"The {what} {said}")
        return cut

    def output(self, text: Tokens | None, source: str | None = None) -> TokenizedText:
        """A whole output with its special tokens, ``</s>`` too, and with the piece that an output for this
        source begins with; raises as ``cut`` and ``token_id``."""
        start = None if source is None else self.rules_for(source).forced_start
        if isinstance(text, str):
            cut, first, end = (
                self.cut(text, "target"),
                () if start is None else (start,),
                (self.config.eos_id,),
            )
            pieces = (*self.pieces(first), *cut.pieces, *self.pieces(end))
            return replace(cut, ids=(*first, *cut.ids, *end), pieces=pieces)
        if not text:
            what = "text" if self.continues else "translation"
            raise InputError(f"The {what} is empty; give it at least one token.")
        ids = tuple(map(self.token_id, text))
        named = zip(text, self.pieces(ids), strict=True)
        pieces = tuple(token if isinstance(token, str) else piece for token, piece in named)
        return TokenizedText(CleanText("", ()), ids, pieces, (), (), ())

    def rules_for(self, text: str) -> SearchRules:
        """The model's rules, with the piece that the output for a text begins with; raises as ``cut``."""
        start = self.cut(text).start
        return self.rules if start is None else replace(self.rules, forced_start=start)

    def ids(self, text: str) -> tuple[int, ...]:
        """Ids of a source or a prompt, without special tokens; raises as ``cut``."""
        return self.cut(text).ids

    def pieces(self, ids: Iterable[int], side: str = "target") -> tuple[str, ...]:
        """The pieces of target or source ids, ``▁`` kept."""
        pieces = self._pieces[side]
        return tuple(pieces[i] if i < len(pieces) else NO_PIECE for i in ids)

    def text(self, ids: Iterable[int]) -> str:
        """The plain text of target ids, without special tokens."""
        return self.tokenizer.decode(ids).strip()

    def token_id(self, token: Token, side: str = "target") -> int:
        """The id of a target or source token; InterventionError if the vocabulary has no such token."""
        if isinstance(token, str):
            name = token if unknown_text(token) is None else UNK
            if name in self._ids[side]:
                return self._ids[side][name]
            raise InterventionError(f"The model's {side} vocabulary has no token {token!r:.60}.")
        count = len(self._pieces[side])
        if not is_whole(token, 0, count - 1):
            raise InterventionError(
                f"The model's {side} vocabulary has {count:,} tokens; there is no id {token!r:.40}."
            )
        return int(token)

    @cached_property
    def _ids(self) -> dict[str, dict[str, int]]:
        """Ids by piece on each side; of several ids with one piece, the first."""
        return {
            side: {piece: len(pieces) - 1 - i for i, piece in enumerate(reversed(pieces))}
            for side, pieces in self._pieces.items()
        }

    def limit(self, tokens: int, max_length: int | None = None) -> int:
        """Most tokens of an output, for a number of source tokens, or for a text whose prompt has so many.

        As requested, or as the rules say, or 1.5 × source tokens + 10 (of a text ``LENGTH``); ValueError if
        it is out of range.
        """
        longest, least = self.config.max_positions, tokens + 1 if self.continues else 1
        if max_length is None and not self.continues:
            return min(self.rules.max_length or int(1.5 * tokens) + 10, longest)
        most = LENGTH if max_length is None else max_length
        if not is_whole(most, least, longest):
            bounds = f"a whole number from {least:,} to {longest:,}"
            raise ValueError(f"max_length is {most!r:.80}; it must be {bounds}.")
        return most
