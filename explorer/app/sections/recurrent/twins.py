"""The two models of the page: a recurrent twin, and the Transformer beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from explorer.app.address import State, session
from explorer.app.controls import inform, pickers
from explorer.app.server import catalogue, examples, runs
from explorer.app.server.opened import Opened
from explorer.app.server.runs import Request
from explorer.app.server.source import Source
from explorer.app.shell import fitting, waiting
from transformer.config import Head
from transformer.run import Translation

REFERENCE = f"{catalogue.TWINS}/sinusoidal"
"""The Transformer that shares data, pieces and training steps with the recurrent twins."""
NAMES = {"additive": "additive", "bilinear": "bilinear", "dot": "dot product", "local": "local-p"}
"""The scores for the visitor."""
_MISSING = (
    "There is no recurrent model here yet. `python -m transformer train --preset recurrent-additive …` "
    "trains one; assets/models/README.md has the whole command."
)


@dataclass(frozen=True)
class TwinRun:
    """One of the two models with its run."""

    opened: Opened  # the sentence and its translation
    head: Head  # layer and head of cross-attention, from 0

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.opened.asked.model

    @property
    def run(self) -> Translation:
        """The translation, with its trace."""
        return self.opened.translation


def here() -> dict[str, Path]:
    """The recurrent twins that are here, by score."""
    paths = {name.rpartition("/")[2]: path for name, path in catalogue.recurrent().items()}
    return {name: path for name, path in paths.items() if catalogue.architecture(path) == "recurrent"}


def score_of(now: State) -> str | None:
    """The score to show: the chosen one, that of the chosen model, or the first; None if no twin is here."""
    known = list(here())
    own = (now.model or "").removeprefix(f"{catalogue.RECURRENT}/")
    return next((score for score in (now.score, own) if score in known), known[0] if known else None)


def missing() -> None:
    """Says that no recurrent model is here."""
    inform(_MISSING)


def pick(score: str) -> None:
    """Draws the switch between the scores."""
    pickers.switch(
        "recurrent.score",
        "Score",
        {each: NAMES.get(each, each) for each in here()},
        score,
        lambda each: session.change(score=each, step=None),
        width="content",
    )


def text_of(now: State) -> str:
    """The visitor's sentence, or one that all twins translate well."""
    return _OPENS if now.text is None else now.text


def sentence_of(now: State, source: Source) -> str:
    """The sentence of that text that is shown."""
    return examples.sentence_of(source, replace(now, text=text_of(now)))


_OPENS = "Yesterday I bought a new book."


def opened(now: State, source: Source) -> Opened:
    """The visitor's sentence through a model, without changes: both models run as they are.

    Raises:
        ValueError: the sentence cannot be translated; the message says why.
    """
    asked: Request = runs.request(replace(now, changes=()), source, sentence_of(now, source))
    with waiting.Teller(source, "Translating") as teller:
        translation = runs.traced(asked, teller)
    return Opened(asked, translation, None)


def side(now: State, source: Source) -> TwinRun:
    """A model's run, with the head of cross-attention that the visitor chose, as far as it has one."""
    found = opened(now, source)
    size, first = source.sizes["cross"], runs.default_head(source, "cross")
    head, _ = fitting.fit_head("cross", now.cross if size != (1, 1) else None, size, first)
    return TwinRun(found, head)
