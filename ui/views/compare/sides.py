"""The two sides of a comparison: the visitor's selection (A), and what it is compared with (B)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from figures.base import captions, labels
from transformer import AttentionKind, Translation, Window
from transformer.text.vocabulary import clean
from transformer.what_if.difference import Map, uniform_weights
from ui.address.kinds import Against
from ui.address.state import State
from ui.linked_view import Head
from ui.server import analyses, catalogue, runs
from ui.server.opened import Opened
from ui.shell import fitting

OTHER_SENTENCE = "The man who wrote the letter is my brother."
AS_IT_IS = "as it is"
"""Name of the run without changes."""
UNIFORM: Against = ("uniform", None)
"""Uniform attention, the control that uses no model."""
_TRIED = ("beam-4", "greedy", *(f"sample-{seed}" for seed in range(1, 6)))
"""Ways of decoding, in the order in which they are tried until one writes something else."""


@dataclass(frozen=True)
class FormulaView:
    """Weights from a formula, in the shape of a head; no model computed them, so there are no scores."""

    kind: AttentionKind
    layer: int
    head: int
    query_tokens: tuple[str, ...]
    predicted_tokens: tuple[str, ...] | None
    key_tokens: tuple[str, ...]
    window: Window
    mask: np.ndarray
    weights: np.ndarray
    scores: None = None


@dataclass(frozen=True)
class Compared:
    """One side of a comparison."""

    name: str  # the name of the side, for the visitor
    translation: Translation  # the translation that the side shows
    kind: str  # encoder, decoder or cross
    head: Head  # layer and head, from 0
    uniform: bool = False  # whether the weights are 1 / visible keys instead of those of the head

    @property
    def rows(self) -> tuple[str, ...]:
        """The tokens that name the rows: the tokens predicted in cross-attention, else the tokens read."""
        named = self.translation.labels(self.kind)
        return named.queries if self.kind == "decoder" else named.predicted or named.queries

    @property
    def columns(self) -> tuple[str, ...]:
        """The tokens that name the columns: the keys."""
        return self.translation.labels(self.kind).keys

    def map(self) -> Map:
        """The whole map."""
        weights, mask = runs.whole(self.translation, self.kind, self.head)
        return Map(self.rows, self.columns, uniform_weights(mask) if self.uniform else weights, mask)

    def view(self, window: Window) -> FormulaView | captions.CheckedHead:
        """A window of the map, in the form that figures take."""
        head = self.translation.head(self.kind, *self.head, window=window)
        if not self.uniform:
            return head
        weights = self.map().weights[window.queries, window.keys]
        tokens = head.query_tokens, head.predicted_tokens, head.key_tokens
        return FormulaView(head.kind, head.layer, head.head, *tokens, window, head.mask, weights)

    @property
    def origin(self) -> str:
        """Part of the caption on the source of the weights, or on their checks."""
        if self.uniform:
            return "a formula, 1 / visible keys: no model computed this"
        audit = self.translation.head(self.kind, *self.head).audit
        return str(captions.badge(audit)["text"])


def usual(opened: Opened) -> Against:
    """The comparison that opens first: an example with its other sentence, another text with the control."""
    return UNIFORM if opened.example is None else ("sentence", None)


def sides(opened: Opened, now: State, kind: str) -> tuple[Compared, Compared]:
    """The selection, and the side that a state compares it with.

    Raises:
        ValueError: the other side cannot be made; the message says why.
    """
    name, detail = now.against or usual(opened)
    own = Compared("", opened.translation, kind, getattr(now, kind))
    phrase = labels.head_phrase(*own.head)
    if name == "uniform":
        return replace(own, name=phrase), replace(own, name="uniform attention", uniform=True)
    if name == "head":
        other = _fitted(opened.asked.model, kind, detail)
        return replace(own, name=phrase), replace(own, name=labels.head_phrase(*other), head=other)
    if name == "untrained":
        twin = analyses.untrained(opened.asked, opened.translation, detail)
        named = f"untrained twin, seed {detail}"
        return replace(own, name=f"{opened.asked.model}, trained"), replace(own, name=named, translation=twin)
    return _other_run(opened, own, now.other, name, detail)


def other_sentence(opened: Opened) -> str:
    """Another sentence to start from: for an example, the one that differs from it in a word."""
    return OTHER_SENTENCE if opened.example is None else opened.example.other


def other_decoding(opened: Opened) -> str:
    """A way of decoding that writes another translation; if none of those tried does, merely another way."""
    ways = [way for way in _TRIED if way != opened.asked.decode]
    return next((way for way in ways if _decoded(opened, way) != opened.translation.text), ways[0])


def other_text(opened: Opened) -> str:
    """Another translation of the sentence to start from: as another way of decoding writes it."""
    return _decoded(opened, other_decoding(opened))


def _decoded(opened: Opened, way: str) -> str:
    """Output of a way of decoding; the translation on the screen if this run cannot be decoded again."""
    try:
        run = runs.translate(replace(opened.asked, decode=way, target=None), runs.Untold())
    except ValueError:
        return opened.translation.text
    return run.text


def _other_run(
    opened: Opened, own: Compared, text: str | None, name: str, detail: str | None
) -> tuple[Compared, Compared]:
    """Both sides, if B is another translation: another text, decoding or model, or a given target."""
    asked = opened.asked
    if name == "model":
        if detail not in catalogue.available():
            raise ValueError("The address names a model that is not available; choose a model from the list.")
        asked = replace(asked, model=str(detail))
        names = opened.asked.model, asked.model
    elif name == "decode":
        asked = replace(asked, decode=str(detail), target=None)
        names = opened.translation.method, asked.decode
    elif name == "forced":
        asked = replace(asked, target=clean(text or other_text(opened)))
        names = opened.translation.method, "your translation"
    elif name == "unchanged":
        asked = replace(asked, changes=())
        names = "changed", AS_IT_IS
    else:
        asked = replace(asked, text=clean(text or other_sentence(opened)), target=None)
        names = "your sentence", "the other sentence"
    run = runs.translate(asked, runs.Untold())
    head = _fitted(asked.model, own.kind, own.head)
    return replace(own, name=names[0]), Compared(names[1], run, own.kind, head)


def notes(opened: Opened, now: State, other: Compared) -> list[str]:
    """Remarks on side B: a cut, the same text as A, another head than asked for."""
    told = (
        [] if other.translation is opened.translation else [f"B: {each}" for each in other.translation.notes]
    )
    mode, detail = now.against or usual(opened)
    if other.kind == "encoder" and mode in {"decode", "forced"}:
        told.append("The encoder reads the source alone, and A and B have the same one: nothing can differ.")
    elif mode in {"decode", "forced"} and other.translation.text == opened.translation.text:
        told.append("A and B are the same translation.")
    if mode == "model" and detail == opened.asked.model:
        told.append("A and B are the same model, so nothing can differ.")
    if mode == "sentence" and other.translation.source_text == opened.translation.source_text:
        told.append("A and B are the same sentence.")
    if mode == "unchanged" and not now.changes:
        told.append("Nothing is changed, so A and B are the same run.")
    if mode == "head" and other.head == getattr(now, other.kind):
        told.append("A and B are the same head, so nothing can differ.")
    if mode == "head":
        size = catalogue.sizes(opened.asked.model)[other.kind]
        told += [f"B: {each}" for each in fitting.fit_head(other.kind, detail, size, detail)[1]]
    return told


def _fitted(model: str, kind: str, head: Head) -> Head:
    return fitting.fit_head(kind, head, catalogue.sizes(model)[kind], head)[0]
