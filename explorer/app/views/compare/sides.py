"""The two sides of a comparison: the visitor's selection (A), and what it is compared with (B)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from explorer.app.address import State
from explorer.app.address.kinds import Against
from explorer.app.maps import measures
from explorer.app.maps.looking import lacking
from explorer.app.server import catalogue, models, per_run, runs
from explorer.app.server.opened import Opened
from explorer.app.server.source import Source
from explorer.app.shell import fitting
from explorer.figures.base import captions, labels
from explorer.lenses.what_if.difference import Map, uniform_weights
from explorer.lenses.words.reading import Axis, Reading, read_axis, read_map, read_tokens
from transformer import AttentionKind, Translation, Window
from transformer.config import Head
from transformer.text.typed import clean

OTHER_SENTENCE = "The man who wrote the letter is my brother."
AS_IT_IS = "as it is"
"""Name of the run without changes."""
UNIFORM: Against = ("uniform", None)
"""Uniform attention, the control that uses no model."""
_TRIED = ("beam-4", "greedy", *(f"sample-{seed}" for seed in range(1, 6)))
"""Ways of decoding, in the order in which they are tried until one writes something else."""


@dataclass(frozen=True)
class FormulaView:
    """Numbers from a formula, or read by words, in the shape of a head; there are no scores."""

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
    opened: Opened | None = None  # the sentence, if what its keys carried can be measured
    measure: str = "weight"  # what the cells say: `weight` or `carried`
    words: bool = False  # whether the map is read by words

    @cached_property
    def _axes(self) -> tuple[Axis, Axis]:
        named, reading = self.translation.labels(self.kind), Reading(words=self.words)
        rows = named.queries if self.kind == "decoder" else named.predicted or named.queries
        return read_axis(rows, reading), read_axis(named.keys, reading)

    @property
    def rows(self) -> tuple[str, ...]:
        """The tokens that name the rows: the tokens predicted in cross-attention, else the tokens read."""
        named = self.translation.labels(self.kind)
        rows = named.queries if self.kind == "decoder" else named.predicted or named.queries
        return read_tokens(rows, self._axes[0])

    @property
    def columns(self) -> tuple[str, ...]:
        """The tokens that name the columns: the keys."""
        return read_tokens(self.translation.labels(self.kind).keys, self._axes[1])

    def place(self, cell: tuple[int, int]) -> tuple[int, int]:
        """The row and column of the map that hold a cell of pieces."""
        row, column = (
            next((i for i, group in enumerate(axis.groups) if at < group.stop), len(axis.groups) - 1)
            for axis, at in zip(self._axes, cell, strict=True)
        )
        return row, column

    def map(self) -> Map:
        """The whole map."""
        weights, mask = runs.whole(self.translation, self.kind, self.head)
        if self.uniform:
            weights = uniform_weights(mask)
        elif self.measure == "carried" and self.opened is not None:
            weights = measures.whole_carried(self.opened, self.kind, self.head)
        weights, mask, _ = read_map(weights, mask, *self._axes)
        return Map(self.rows, self.columns, weights, mask)

    def view(self, window: Window) -> FormulaView | captions.CheckedHead:
        """A window of the map, in the form that figures take."""
        if not self.uniform and self.measure == "weight" and not self.words:
            return self.translation.head(self.kind, *self.head, window=window)
        found = self.map()
        part = window.queries, window.keys
        rows, keys = tuple(found.rows[window.queries]), tuple(found.columns[window.keys])
        predicted = rows if self.kind == "cross" else None
        kind, (layer, head) = AttentionKind(self.kind), self.head
        return FormulaView(
            kind, layer, head, rows, predicted, keys, window, found.mask[part], found.weights[part]
        )

    @property
    def derived(self) -> bool:
        """Whether the cells are derived from the model's own arrays."""
        return self.measure != "weight" or self.words

    def origin(self) -> str:
        """Part of the caption on the source of the numbers, or on their checks."""
        if self.uniform:
            return "a formula, 1 / visible keys: no model computed this"
        return str(captions.badge(self.translation.map(self.kind, *self.head).audit, self.derived)["text"])


def usual(opened: Opened) -> Against:
    """The comparison that opens first: an example with its other sentence, another text with the control."""
    return UNIFORM if opened.example is None else ("sentence", None)


def sides(opened: Opened, now: State, kind: str) -> tuple[Compared, Compared]:
    """The selection, and the side that a state compares it with, in the measure that both can show.

    Raises:
        ValueError: the other side cannot be made; the message says why.
    """
    first, second = _sides(opened, now, kind)
    words = first.translation.source_tokens != second.translation.source_tokens
    words = words and (now.against or usual(opened))[0] == "model"
    measure = "weight" if unmeasured((first, second), now.measure) else now.measure
    return replace(first, measure=measure, words=words), replace(second, measure=measure, words=words)


def unmeasured(pair: tuple[Compared, Compared], measure: str) -> str | None:
    """Why two sides cannot be compared in a measure, in one sentence; None if they can."""
    if measure == "weight":
        return None
    if measure == "effect":
        return "Effects are nats and no shares of a row, so this page compares weights or what they carried."
    if any(each.uniform for each in pair):
        return "Uniform attention is a formula that carries nothing; the maps show weights."
    if any(each.opened is None for each in pair):
        return "What keys carried is not measured in an untrained twin; the maps show weights."
    found = (lacking(each.opened, measure) for each in pair if each.opened is not None)
    return next((why for why in found if why), None)


def _sides(opened: Opened, now: State, kind: str) -> tuple[Compared, Compared]:
    name, detail = now.against or usual(opened)
    own = Compared("", opened.translation, kind, getattr(now, kind), opened=opened)
    phrase = labels.head_phrase(*own.head)
    if name == "uniform":
        return replace(own, name=phrase), replace(own, name="uniform attention", uniform=True)
    if name == "head":
        other = _fitted(opened.source, kind, detail)
        return replace(own, name=phrase), replace(own, name=labels.head_phrase(*other), head=other)
    if name == "untrained":
        twin = per_run.untrained(opened, detail)
        named = f"untrained twin, seed {detail}"
        trained = f"{opened.asked.model}, trained"
        return replace(own, name=trained), replace(own, name=named, translation=twin, opened=None)
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
        run = runs.translate(replace(opened.asked, decode=way, target=None), runs.NoProgress())
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
        asked = replace(asked, source=models.find(str(detail)))
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
    run = runs.translate(asked, runs.NoProgress())
    head = _fitted(asked.source, own.kind, own.head)
    other = Compared(names[1], run, own.kind, head, opened=Opened(asked, run, None))
    return replace(own, name=names[0]), other


def notes(opened: Opened, now: State, other: Compared) -> list[str]:
    """Remarks on side B: a cut, the same text as A, another head than asked for."""
    told = (
        [] if other.translation is opened.translation else [f"B: {each}" for each in other.translation.notes]
    )
    mode, detail = now.against or usual(opened)
    if other.words:
        told.append("The two models have different pieces, so both maps are read by words.")
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
        size = opened.translation.config.sizes[other.kind]
        told += [f"B: {each}" for each in fitting.fit_head(other.kind, detail, size, detail)[1]]
    return told


def _fitted(source: Source, kind: str, head: Head) -> Head:
    return fitting.fit_head(kind, head, source.sizes[kind], head)[0]
