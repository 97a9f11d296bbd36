"""A sentence that is ready to be shown, and what is read from its run: made once, and then kept."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from explorer.app.server import runs
from explorer.app.server.run_key import RunKey
from explorer.app.server.source import Source
from explorer.app.server.stores import Fact, bytes_of, remembered
from explorer.linked.view.events import Cursor
from explorer.linked.view.strips import (
    Example,
    WordAlignment,
    claim_step,
    glossed,
    meant,
    n_given,
    sides_of,
    tell,
)
from explorer.linked.view.wire import Gloss
from transformer.config import AttentionKind
from transformer.interventions import InterventionError
from transformer.run import Translation


class Opening(NamedTuple):
    """On what a sentence opens."""

    step: int  # the step that opens first
    claimed: (
        int | None
    )  # the step that shows the example's claim; None if there is none, or its word is lost
    # a word under each target word that has one, by the position (from 0) of the word's first piece
    glosses: dict[int, Gloss]
    # the source token that opens first, where the cursor walks over the source; None follows the
    # step
    source: int | None = None

    @property
    def position(self) -> int:
        """Where the cursor stands."""
        return self.step if self.source is None else self.source


@dataclass(frozen=True)
class View:
    """A sentence that is ready to be shown."""

    run_key: RunKey  # what the translation is kept by
    translation: Translation  # the translation with its trace
    example: Example | None  # the example with this sentence, or None

    @property
    def source(self) -> Source:
        """The model, or the open file."""
        return self.run_key.source

    @property
    def key(self) -> str:
        """The short hash on which figures, events and the view agree."""
        return self.run_key.key

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """The key and the run."""
        return self.run_key, id(self.translation)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attention that the run has, in the order of its model's table."""
        return tuple(map(str, self.translation.config.sites))

    @property
    def sides(self) -> dict[str, str]:
        """What the strips of tokens are called that the run has."""
        return sides_of(self.translation)

    @property
    def n_given(self) -> int:
        """How many tokens of the output a prompt gave; none of a run whose output was read."""
        return n_given(self.translation)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of this run, beside what holds for every run of its model."""
        return tuple(note for note in self.translation.notes if note not in self.source.notes)

    def predicted_at(self, cursor: Cursor) -> int | None:
        """The position of the prediction that a cursor asks about: that under it, else the first;
        None if the run predicts nothing."""
        run = self.translation
        at = cursor.step
        if run.config.cursor_side == "encoder":
            at = cursor.source or 0
        return at if at in run.predictions else next(iter(run.predictions), None)

    def tokens(self, candidates: bool = False) -> list[str]:
        """The pieces of the run, with those that were candidates or without."""
        run = self.translation
        offered = [
            alternative.token
            for step in run.steps * candidates
            for alternative in step.alternatives
        ]
        return [*run.source_tokens, *run.target_tokens, *offered]

    def traced(self) -> View:
        """The same sentence with the whole trace of its translation; waits for the model."""
        return replace(self, translation=runs.translate(self.run_key, whole=True))

    @Fact
    def opening(self) -> Opening:
        """On what it opens: its example's claim, else the word that its attention tells most
        clearly."""
        run = self.translation
        claimed = None
        glosses = dict[int, Gloss]()
        alignment = word_alignment(self)
        if alignment.glosses:
            glosses = glossed(alignment.glosses, self.source.aligner)
        if self.example is not None:
            claimed = claim_step(self.example, run.target_tokens)
            glosses |= meant(run, self.example)
        step = alignment.step if claimed is None else claimed
        return Opening(step, claimed, glosses, alignment.source)


@remembered(64)
def word_alignment(opened: View) -> WordAlignment:
    """Glosses by the best aligner, and the step at which the head that opens first agrees with it.

    Without a source there are none, and what the model wrote itself opens first.
    """
    run = opened.translation
    source = opened.source
    kind = run.config.last_kind
    if kind is AttentionKind.DECODER:
        return WordAlignment(max(0, min(opened.n_given, len(run.target_tokens) - 1)))
    aligner = source.aligner if kind is AttentionKind.CROSS else None
    return tell(run, aligner, source.default_heads[kind])


@remembered(16, lambda run: 0 if run is None else bytes_of(run))
def forced(opened: View, target: tuple[int, ...]) -> Translation | None:
    """The changed model on the target ids of another run; None if a change contradicts them, or the
    model writes nothing."""
    run_key = opened.run_key
    if not opened.source.writes:
        return None
    with suppress(InterventionError):
        model = opened.source.load()
        whole = model.whole(target, opened.translation.start_id)
        return model.force(run_key.text, whole, interventions=run_key.changes)
    return None
