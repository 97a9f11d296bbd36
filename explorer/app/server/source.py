"""What stands behind a name in the list of models: a model on this machine, or a run from a
file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import transformer
from explorer.app.server.stores import Fact
from explorer.lenses.heads.survey import surveyed
from explorer.lenses.words.alignment import Aligner
from transformer.config import Head, ModelConfig
from transformer.storage.card import Header
from transformer.storage.description import read_header

T = TypeVar("T")
Progress = Callable[[float, str], object]
"""Hears how far work has come, as a share and in a sentence; ends the work by raising."""


def _hear_nothing(share: float, text: str) -> None:
    pass


NOBODY: Progress = _hear_nothing


FILE = "imported: "
"""How the names of files begin; no model's does."""
NEEDS_MODEL = (
    "This needs the model, which an imported file does not hold: choose a model on the left."
)
NEEDS_VECTORS = (
    "This needs queries, keys and values, which a file of weights does not hold: choose a model on "
    "the left."
)
_USUAL = ("eng_", "__en__", "en_"), ("deu_", "__de__", "de_", "<2de>")
"""How the pieces of English and German begin."""


class Source(ABC):
    """A model, or a run without its model.

    A page finds it once (`models.find`), and hands it on with the key of a run. It is compared by its
    name, and by what its directory was like when it was found.
    """

    name: str
    """As in the list of models."""
    path: Path | None
    """The directory of the model; None for a run from a file."""
    has_model: bool
    """Whether there is a model, not only its run."""
    has_vectors = True
    """Whether its runs have queries, keys and values, not only weights."""

    @property
    def text(self) -> str | None:
        """The only text that there is of it; None if any can be typed."""
        return None

    @property
    @abstractmethod
    def config(self) -> ModelConfig:
        """Its config; loads a model whose files do not tell all of it; ValueError if they are
        damaged."""

    @property
    @abstractmethod
    def default_heads(self) -> dict[str, Head]:
        """The heads that open first, by kind: from `heads.json`, otherwise measured on a few
        sentences."""

    @property
    def stated(self) -> ModelConfig | None:
        """Its config as far as the files tell without loading the model.

        None if they cannot be read.
        """
        return self.config

    @abstractmethod
    def load(self, progress: Progress = NOBODY) -> transformer.Translator:
        """The model, loaded once per server, and again if its directory has changed.

        ValueError if the directory is damaged, or this is a file, which holds a run without its
        model.
        """

    def beside(self, read: Callable[..., T], *arguments: Hashable) -> T:
        """What a function reads from the model's directory, once until a file there changes.

        KeyError if this is a file, which has no directory; ValueError if what is read is damaged.
        """
        if self.path is None:
            raise KeyError(self.name)
        values = vars(self).setdefault("_beside", {})
        key = (read, *arguments)
        if key not in values:
            values[key] = read(self.path, *arguments)
        found: T = values[key]
        return found

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """Its name, and the model as it was loaded last."""
        return self.name, id(self.load())

    @property
    def heads(self) -> dict[str, Any]:
        """The contents of `heads.json`; empty if there is none. Further as `config`."""
        return {}

    @Fact
    def roles(self) -> dict[str, list[list[str]]]:
        """What every head does over many sentences, by kind, layer and head; an empty text for a
        mixed head.

        Empty if the model has no survey of its heads.
        """
        with suppress(OSError, ValueError, KeyError):
            return self.beside(surveyed)
        return {}

    @Fact
    def aligner(self) -> Aligner:
        """The best aligner that `heads.json` names, otherwise the cross-attention head that opens
        first."""
        best = self.heads.get("aligner")
        if best is None:
            return Aligner((self.default_heads["cross"],), "predicted")
        return Aligner(tuple((layer, head) for layer, head in best["heads"]), best["rows"])

    @property
    def unsure_below(self) -> float | None:
        """The mean log-probability that four of five of its outputs reach, in nats.

        None if unknown.
        """
        known: float | None = self.heads.get("unsure_below")
        return known

    @property
    def resident(self) -> bool:
        """Whether the model is in memory."""
        return False

    @property
    def header(self) -> Header:
        """The header of the model's card; an empty one if this is a file."""
        return Header() if self.path is None else self.beside(read_header)

    @Fact
    def sizes(self) -> dict[str, Head]:
        """Number of layers and heads by kind."""
        return self.config.sizes

    def kind(self, wanted: str | None) -> str:
        """The kind of attention asked for; if it is none of the model's, the last of its own."""
        return wanted if wanted in self.sizes else str(self.config.last_kind)

    @property
    def task(self) -> str:
        """What it does with a text: `translate` it, `write` what it asks for, or `continue` it."""
        return getattr(self.stated, "task", "translate")

    @Fact
    def continues(self) -> bool:
        """Whether its text is the beginning of what it writes, and no source."""
        stated = self.stated
        return stated is not None and "encoder" not in stated.stacks

    @Fact
    def writes(self) -> bool:
        """Whether it writes an output, token by token, and does not only read its text."""
        stated = self.stated
        return stated is None or stated.writes

    @property
    def fills(self) -> bool:
        """Whether it predicts words that are masked in its text."""
        stated = self.stated
        return stated is not None and stated.mask_id is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the model in memory, whatever it reads; empty before."""
        return self.load().notes if self.resident else ()

    @property
    def chats(self) -> bool:
        """Whether it answers in conversations, as far as is known without loading it."""
        return self.resident and bool(self.load().chat_template)

    @property
    def prompts(self) -> tuple[str, ...]:
        """Beginnings of texts that tell the model what to do; empty for one that needs none."""
        found: tuple[str, ...] = getattr(self.stated, "prompt_texts", ())
        return found

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces that name a target language, such as `>>fra<<`.

        Empty if there is only one language.
        """
        try:
            pieces = self.config.language_pieces if self.has_model else ()
        except (ValueError, OSError):
            return ()
        return pieces if len(pieces) > 1 else ()

    @property
    def names_pair(self) -> bool:
        """Whether the model is told the language of the text, too."""
        return bool(self.pieces) and self.config.language_pair

    def addressed(self, text: str, language: str | None) -> str:
        """The text for the model: one that names no language, but has to, gets the chosen one in
        front."""
        return (
            text
            if not self.pieces or self.named_in(text)
            else f"{self.language_of(language)} {text}"
        )

    def named_in(self, text: str) -> str | None:
        """The language, or the two languages, that a text itself names; None if it names none."""
        pieces = self.pieces
        if pieces and self.names_pair:
            first = text.split()[:2]
            return " ".join(first) if len(first) == 2 and set(first) <= set(pieces) else None
        return next((piece for piece in pieces if text.startswith(piece)), None)

    def language_of(self, language: str | None) -> str:
        """The target language: the chosen one if the model knows it, otherwise German, or the
        model's first.

        For a model that is told both, the two of them; usually from English into German.
        """
        pieces = self.pieces
        if not self.names_pair:
            usually = next((piece for piece in pieces if piece.startswith(_USUAL[1])), pieces[0])
            return language if language in pieces else usually
        words = (language or "").split()
        if len(words) == 2 and set(words) <= set(pieces):
            return " ".join(words)
        usual = [next((piece for piece in pieces if piece.startswith(of)), "") for of in _USUAL]
        return " ".join(usual if all(usual) else pieces[:2])
