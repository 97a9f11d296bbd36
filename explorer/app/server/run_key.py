"""What the app keeps runs by: a model, and what it was asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass

import transformer
from explorer.app.server.source import Source
from transformer.interventions import Intervention, write_text

TEMPERATURE = 0.8


@dataclass(frozen=True)
class Drawing:
    """Settings for drawing the next token, apart from the seed."""

    temperature: float = TEMPERATURE  # divides the logits
    top_k: int | None = None  # only the k most probable tokens are drawn; None for all
    top_p: float | None = (
        None  # only the fewest tokens whose probabilities reach p are drawn; None for all
    )

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
    text: str  # the sentence
    decode: str  # `greedy`, `beam-4`, `sample-7`
    target: str | None  # the visitor's own translation, or None
    changes: tuple[Intervention, ...] = ()  # what is changed in the run
    drawing: Drawing = USUAL  # how a sample is drawn; the usual one for every other way of decoding

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
        )
        written = "\0".join(fields).encode("utf-8", "surrogatepass")
        return hashlib.sha256(written).hexdigest()[:12]
