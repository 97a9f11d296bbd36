"""What reads a text for a model, and names what it writes: its vocabulary, its own rules, its
notes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from transformer import interventions as do
from transformer.config import ModelConfig, Side
from transformer.decoding import FREE, AnyModel, SearchRules
from transformer.interventions import InterventionError
from transformer.model import EncoderDecoder, LanguageModel
from transformer.run import Translation
from transformer.text.tokenizer import TokenizedText, Vocabulary
from transformer.text.typed import CleanText
from transformer.text.words import TYPED_MASK, UNK, End, Mask, Special, unknown_text

T = TypeVar("T")
Tokens = str | Sequence[int] | Sequence[str]
"""A text, or all of its tokens as ids or pieces."""
SourceToken = tuple[int, str]
"""Id and piece of a token."""
MAX_SOURCE_TOKENS = 1024
READS_ONLY = "This model is an encoder alone, which writes no output."


def _is_unknown(token: object) -> bool:
    """Whether a token is named by the text for which there is no piece."""
    return isinstance(token, str) and unknown_text(token) is not None


class InputError(ValueError):
    """A text that cannot be translated; the message says why in one sentence."""


class Reader:
    """A network with its vocabulary: what a request needs to know of a model."""

    model: AnyModel
    config: ModelConfig

    def __init__(
        self,
        model: AnyModel,
        tokenizer: Vocabulary,
        *,
        name: str = "model",
        rules: SearchRules = FREE,  # the model's own rules for the search
        notes: tuple[str, ...] = (),  # sentences for the reader of every run
        # mean outputs of the heads, for ``ablate(…, by="mean")``
        means: do.HeadMeans | None = None,
    ) -> None:
        model.eval().requires_grad_(False)
        self.model = model
        self.config = model.config
        self.tokenizer = tokenizer
        self.continues = isinstance(model, LanguageModel)
        self.name = name
        self.rules = rules
        self.notes = notes
        self.means = means

    @property
    def translating(self) -> EncoderDecoder:
        """The network, if it translates; TypeError for a model that does something else."""
        if not isinstance(self.model, EncoderDecoder):
            raise TypeError("This model cannot translate: it is no encoder-decoder.")
        return self.model

    @property
    def ends(self) -> frozenset[int]:
        """The ids that end an output."""
        return frozenset({self.config.eos_id, *self.rules.other_ends})

    def cut(self, text: str, side: str = "source") -> TokenizedText:
        """A source, a prompt, or an output ("target"), in pieces, without special tokens.

        InputError if it has too many tokens, or none (a prompt may); and a source if it does not
        name a target language although the model needs one.
        """
        if not isinstance(text, str):
            raise TypeError(f"The text is {type(text).__name__}; it must be a string.")
        text = self._with_masks(text)
        written = self.continues or side == "target"
        if written:
            cut = self.tokenizer.target.cut(text)
            n_named = 0
        else:
            cut = self.tokenizer.cut(text)
            n_named = self._check_languages(cut)
        prompt = self.continues and side == "source"
        name = "translation" if side == "target" and not self.continues else "text"
        if not self.config.writes and side == "target":
            raise InputError(READS_ONLY)
        n_tokens = len(cut.ids) - n_named + 1
        blank = not self.continues and not cut.clean.words
        if (n_tokens == 1 or blank) and not prompt:
            raise InputError(f"The {name} is empty; type a sentence.")
        most = min(MAX_SOURCE_TOKENS, self.config.max_positions)
        if not self.config.writes:
            n_tokens = len(self.framed(cut))
        if n_tokens > most:
            raise InputError(f"The {name} has {n_tokens:,} tokens; shorten it to at most {most:,}.")
        return cut

    def around(self, text: str, start: int, stop: int) -> tuple[str, str]:
        """What stands before and after some tokens of a source, special ones counted; raises as
        ``cut``."""
        clean = self.cut(text).clean.text
        spans = list(self._framed(self._spans(clean), (0, 0), (len(clean), len(clean))))
        begin = spans[start][0]
        end = spans[stop - 1][1]
        return clean[:begin], clean[end:]

    def words_of(self, text: str) -> tuple[int, ...]:
        """The word of the typed text that each token of a source stands in, from 0, special tokens
        counted; −1 for one that stands for no text. Raises as ``cut``."""
        cut = self.cut(text)
        return tuple(self._framed(zip(cut.ids, cut.words, strict=True), -1, -1))

    def _spans(self, clean: str) -> Iterator[tuple[int, tuple[int, int]]]:
        """The id of each piece of a clean text, and where it begins and ends."""
        for number, _, begin, end in self.tokenizer.source.split(clean):
            yield number, (begin, end)

    def framed(self, cut: TokenizedText) -> tuple[SourceToken, ...]:
        """The tokens of a source as its encoder reads them, special ones included: with an end, and
        before an encoder alone with a start, too."""
        ids = (self.config.bos_id, self.config.eos_id)
        first, last = zip(ids, self.pieces(ids, "source"), strict=True)
        tokens = zip(cut.ids, self._special_named(cut), strict=True)
        return tuple(self._framed(((token[0], token) for token in tokens), first, last))

    def _framed(self, tokens: Iterable[tuple[int, T]], first: T, last: T) -> Iterator[T]:
        """What stands for each token of a source, given with its id, and for those around it."""
        if self.config.source_starts:
            yield first
        for number, token in tokens:
            yield token
            if number == self.config.eos_id:
                yield from [token] * (self.config.n_separators - 1)
        yield last

    def _special_named(self, cut: TokenizedText) -> tuple[str, ...]:
        """The pieces of a source, those that the model knows by id named so; an unknown piece keeps
        its own text."""
        named = self.pieces(cut.ids, "source")
        return tuple(
            piece if unknown_text(piece) is not None else name
            for piece, name in zip(cut.pieces, named, strict=True)
        )

    def _with_masks(self, text: str) -> str:
        """A text whose masks are spelled as the vocabulary spells them; ``[MASK]`` is for any."""
        if self.config.mask_id is None:
            return text
        (mask,) = self.pieces([self.config.mask_id], "source")
        return text.replace(TYPED_MASK, str(mask))

    def _check_languages(self, cut: TokenizedText) -> int:
        """Number of pieces that name a language; InputError if a source lacks what the model
        needs."""
        languages = self.config.language_pieces
        if not languages:
            return 0
        if self.config.language_pair and cut.start is None:
            raise InputError(
                f"This model knows {len(languages)} languages; begin the text with the one that it "
                f"is in and the one that you want, such as {' '.join(languages[:2])}."
            )
        first = self.pieces(cut.ids[:1], "source")
        named = not {*languages}.isdisjoint(first)
        if len(languages) > 1 and not named:
            raise InputError(
                f"This model translates into {len(languages)} languages; begin the text with the "
                f"one you want, such as {' or '.join(languages[:3])}."
            )
        return int(named)

    def output(self, text: Tokens | None, source: str | None = None) -> TokenizedText:
        """A whole output with its special tokens, ``</s>`` too.

        It begins with the piece that an output for this source begins with. Raises as ``cut`` and
        ``token_id``.
        """
        if isinstance(text, str):
            return self._written(text, source)
        if not text:
            name = "text" if self.continues else "translation"
            raise InputError(f"The {name} is empty; give it at least one token.")
        ids = tuple(map(self.token_id, text))
        named = zip(text, self.pieces(ids), strict=True)
        pieces = tuple(str(token) if _is_unknown(token) else piece for token, piece in named)
        return TokenizedText(CleanText("", ()), ids, pieces, words=(), unknown=(), spelled=())

    def _written(self, text: str, source: str | None) -> TokenizedText:
        first: tuple[int, ...] = ()
        if source is not None:
            start = self.cut(source).start
            if start is None:
                start = self.rules.forced_start
            if start is not None:
                first = (start,)
        cut = self.cut(text, "target")
        end = (self.config.eos_id,)
        pieces = (*self.pieces(first), *cut.pieces, *self.pieces(end))
        return replace(cut, ids=(*first, *cut.ids, *end), pieces=pieces)

    def whole(self, ids: Sequence[int], start: int | None) -> Sequence[int]:
        """The ids of a whole text: with what was read first, unless that was the start token."""
        if self.config.starts_with_token or start is None:
            return ids
        return (start, *ids)

    def ids_of(self, run: Translation) -> dict[Side, tuple[int, ...]]:
        """Ids that each stack reads in a run; raises as ``cut``."""
        ids: dict[Side, tuple[int, ...]] = {}
        if "encoder" in self.config.stacks:
            ids["encoder"] = tuple(number for number, _ in self.framed(self.cut(run.source_text)))
        if self.config.writes:
            ids["decoder"] = run.read_ids
        return ids

    def prompt_steps(self, text: str) -> int:
        """Number of tokens of a prompt that are steps of its output; raises as ``cut``.

        Without a start token, the text's own first token is read before the first step.
        """
        count = len(self.ids(text))
        if not self.config.starts_with_token:
            count -= 1
        return max(0, count)

    def ids(self, text: str) -> tuple[int, ...]:
        """Ids of a source or a prompt, without special tokens; raises as ``cut``."""
        return self.cut(text).ids

    def pieces(self, ids: Iterable[int], side: str = "target") -> tuple[str, ...]:
        """The pieces of target or source ids, ``▁`` kept."""
        vocabulary = self.tokenizer.source if side == "source" else self.tokenizer.target
        classes = self._classes[side]
        numbers = list(map(int, ids))
        named = zip(numbers, vocabulary.named(numbers), strict=True)
        return tuple(
            classes[number](piece) if number in classes else piece for number, piece in named
        )

    @cached_property
    def _classes(self) -> dict[str, dict[int, type[Special]]]:
        """By side, the classes of the pieces that the model knows by id: those that end a text,
        and that which stands for a hidden word."""
        masks = dict[int, type[Special]]()
        if self.config.mask_id is not None:
            masks[self.config.mask_id] = Mask
        return {
            "source": masks | {self.config.eos_id: End},
            "target": masks | dict.fromkeys(self.ends, End),
        }

    def text(self, ids: Iterable[int]) -> str:
        """The plain text of target ids, without special tokens."""
        return self.tokenizer.target.text(ids)

    def token_id(self, token: do.Token, side: str = "target") -> int:
        """The id of a target or source token; InterventionError if the vocabulary has no such
        token."""
        if isinstance(token, str):
            return self._id_of_piece(token, side)
        count = self._count(side)
        if (
            isinstance(token, int | np.integer)
            and not isinstance(token, bool)
            and 0 <= token < count
        ):
            return int(token)
        raise InterventionError(
            f"The model's {side} vocabulary has {count:,} tokens; there is no id {token!r:.40}."
        )

    def _id_of_piece(self, piece: str, side: str) -> int:
        name = piece if unknown_text(piece) is None else UNK
        ids = self._ids_by_piece[side]
        if name not in ids:
            raise InterventionError(f"The model's {side} vocabulary has no token {piece!r:.60}.")
        return ids[name]

    def _count(self, side: str) -> int:
        """Number of tokens of a side's vocabulary."""
        return self.config.vocab_size if side == "source" else self.config.n_target_pieces

    @cached_property
    def _ids_by_piece(self) -> dict[str, dict[str, int]]:
        """Ids by piece on each side; of several ids with one piece, the first."""
        by_piece = dict[str, dict[str, int]]()
        for side in ("source", "target"):
            numbered = list(enumerate(self.pieces(range(self._count(side)), side)))
            by_piece[side] = {piece: number for number, piece in reversed(numbered)}
        return by_piece
