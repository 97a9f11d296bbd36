"""What the app keeps runs by: a model, and what it was asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Self

import transformer
from explorer.app.address.kinds import SAMPLE, USUAL_WRITTEN
from explorer.app.address.state import State
from explorer.app.server.source import Source
from transformer.interventions import Intervention, write_text
from transformer.text.typed import clean, without_surrogates

TEMPERATURE = 0.8


@dataclass(frozen=True)
class Drawing:
    """Settings for drawing the next token, apart from the seed."""

    temperature: float = TEMPERATURE  # divides the logits
    top_k: int | None = None  # only the k most probable tokens are drawn; None for all
    top_p: float | None = (
        None  # only the fewest tokens whose probabilities reach p are drawn; None for all
    )

    @classmethod
    def of(cls, state: State) -> Self:
        """Settings with which a state draws samples."""
        return cls(state.temperature, state.top_k, state.top_p)

    def sampling(self, seed: int = 0) -> transformer.Sampling:
        """The settings of the package."""
        return transformer.Sampling(self.temperature, self.top_k, self.top_p, seed)

    def __str__(self) -> str:
        top_k = "" if self.top_k is None else f", top-k {self.top_k:,}"
        top_p = "" if self.top_p is None else f", top-p {self.top_p:g}"
        return f"temperature {self.temperature:g}{top_k}{top_p}"


USUAL = Drawing()


@dataclass(frozen=True)
class RunKey:
    """What a run is kept by: the model, and all that it was asked for."""

    source: Source  # the model, or the open file
    text: str  # the source, or what is continued
    decode: str  # `greedy`, `beam-4`, `sample-7`
    target: str | None  # the whole output, if the model only reads it; None if it writes
    changes: tuple[Intervention, ...] = ()  # what is changed in the run
    drawing: Drawing = USUAL  # how a sample is drawn; the usual one for every other way of decoding
    write: int = 0  # how many tokens may follow a text that is continued; none of a translation
    chat: bool = False  # whether the text is what somebody says to a chat model

    @classmethod
    def of(cls, state: State, source: Source, text: str) -> Self:
        """The run that a state asks for, of a text that may be one of its sentences."""
        drawing = Drawing.of(state) if state.decode.startswith(SAMPLE) else USUAL
        if source.continues:
            return cls._continued(state, source, without_surrogates(text), drawing)
        if not source.writes:
            return cls(source, clean(text), "greedy", None, state.changes)
        return cls(
            source=source,
            text=source.addressed(clean(text), state.language),
            decode=state.decode,
            target=None if state.target is None else clean(state.target),
            changes=state.changes,
            drawing=drawing,
        )

    @classmethod
    def _continued(cls, state: State, source: Source, text: str, drawing: Drawing) -> Self:
        """The run of a text that a model continues, or only reads.

        As it was typed, since a model may have pieces for line breaks and blanks.
        """
        reads = not state.write
        return cls(
            source=source,
            text=text,
            decode="greedy" if reads else state.decode,
            target=text if reads else None,
            changes=state.changes,
            drawing=USUAL if reads else drawing,
            write=state.write,
            chat=state.chat and source.chats and not reads,
        )

    def writing(self, decode: str) -> Self:
        """The run of the same text in which the model writes; after one that was only read, as
        many tokens as usual."""
        write = self.write
        if self.source.continues and not write:
            write = USUAL_WRITTEN
        return replace(self, target=None, decode=decode, drawing=USUAL, write=write)

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.source.name

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """The key, and the model as it was loaded last."""
        return self, id(self.source.load())

    @property
    def key(self) -> str:
        """A short hash, by which figures, events and the view match each other.

        Scripts call it `trace`.
        """
        fields = (
            self.source.name,
            self.text,
            self.decode,
            self.target or "",
            str(self.target is None),
            write_text(self.changes) if self.changes else "",
            str(self.drawing),
            str(self.write),
            str(self.chat),
        )
        written = "\0".join(fields).encode("utf-8", "surrogatepass")
        return hashlib.sha256(written).hexdigest()[:12]
