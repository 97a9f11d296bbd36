"""The two sides of a comparison: the visitor's selection (A), and what it is compared with (B)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from explorer.app.address import State
from explorer.app.address.kinds import Against
from explorer.app.controls import options
from explorer.app.maps import measures
from explorer.app.maps.looking import lacking
from explorer.app.server import catalogue, models, per_run, runs
from explorer.app.server.opened import Opened
from explorer.app.shell import fitting
from explorer.figures.base import captions, labels
from explorer.lenses.what_if.difference import Map, uniform_weights
from explorer.lenses.words.reading import Axis, Reading, read_axis, read_map, read_tokens
from transformer import AttentionKind, Translation, Window
from transformer.config import Head
from transformer.text.typed import clean

OTHER_SENTENCE = "The man who wrote the letter is my brother."
AS_IT_IS = "as it is"
DECODINGS = {"greedy": "greedy", "beam-4": "beam, 4 hypotheses", "sample-1": "sampling, seed 1"}
TRIED = ("beam-4", "greedy", *(f"sample-{seed}" for seed in range(1, 6)))
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
class Side:
    """One side of a comparison."""

    name: str  # the name of the side, for the visitor
    run: Translation  # the translation that the side shows
    kind: str  # encoder, decoder or cross
    head: Head  # layer and head, from 0
    opened: Opened | None = None  # the sentence, if what its keys carried can be measured
    is_uniform: bool = False  # whether the weights are 1 / visible keys instead of those of the head
    measure: str = "weight"  # what the cells say: `weight` or `carried`
    words: bool = False  # whether the map is read by words

    @cached_property
    def pieces(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What names rows and columns: tokens predicted in cross-attention, else read; and the keys."""
        named = self.run.labels(self.kind)
        return named.queries if self.kind == "decoder" else named.predicted or named.queries, named.keys

    @cached_property
    def axes(self) -> tuple[Axis, Axis]:
        """Rows and columns as they are read."""
        rows, columns = (read_axis(each, Reading(words=self.words)) for each in self.pieces)
        return rows, columns

    @cached_property
    def tokens(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of rows and columns."""
        rows, columns = (read_tokens(*each) for each in zip(self.pieces, self.axes, strict=True))
        return rows, columns

    def place(self, cell: tuple[int, int]) -> tuple[int, int]:
        """The row and column of the map that hold a cell of pieces."""
        row, column = (
            next((i for i, group in enumerate(axis.groups) if at < group.stop), len(axis.groups) - 1)
            for axis, at in zip(self.axes, cell, strict=True)
        )
        return row, column

    def map(self) -> Map:
        """The whole map."""
        weights, mask = runs.whole(self.run, self.kind, self.head)
        if self.is_uniform:
            weights = uniform_weights(mask)
        elif self.measure == "carried" and self.opened is not None:
            weights = measures.whole_carried(self.opened, self.kind, self.head)
        weights, mask, _ = read_map(weights, mask, *self.axes)
        return Map(*self.tokens, weights, mask)

    def view(self, window: Window) -> FormulaView | captions.CheckedHead:
        """A window of the map, in the form that figures take."""
        if not self.is_uniform and self.measure == "weight" and not self.words:
            return self.run.head(self.kind, *self.head, window=window)
        whole, cells = self.map(), (window.queries, window.keys)
        rows, keys = tuple(whole.rows[window.queries]), tuple(whole.columns[window.keys])
        predicted, kind = rows if self.kind == "cross" else None, AttentionKind(self.kind)
        arrays = whole.mask[cells], whole.weights[cells]
        return FormulaView(kind, *self.head, rows, predicted, keys, window, *arrays)

    def origin(self) -> str:
        """Part of the caption on the source of the numbers, or on their checks."""
        if self.is_uniform:
            return "a formula, 1 / visible keys: no model computed this"
        audit = self.run.map(self.kind, *self.head).audit
        return str(captions.badge(audit, self.measure != "weight" or self.words)["text"])


# --- with what the selection is compared --------------------------------------------------------------------


def decoded(opened: Opened, way: str) -> str:
    """Output of a way of decoding; the translation on the screen if this run cannot be decoded again."""
    try:
        return runs.translate(replace(opened.asked, decode=way, target=None)).text
    except ValueError:
        return opened.translation.text


def other_decoding(opened: Opened) -> str:
    """A way of decoding that writes another translation; if none of those tried does, merely another way."""
    ways = [way for way in TRIED if way != opened.asked.decode]
    return next((way for way in ways if decoded(opened, way) != opened.translation.text), ways[0])


def usual_text(opened: Opened, mode: str) -> str:
    """The text to start from: another translation of the sentence, or a sentence that differs in a word."""
    if mode == "forced":
        return decoded(opened, other_decoding(opened))
    return OTHER_SENTENCE if opened.example is None else opened.example.other


def other_head(own: Side, head: Head, _text: str | None) -> tuple[str, Side]:
    """Another head of the same run."""
    other = fitted(own.opened, own.kind, head)
    return labels.head_phrase(*own.head), replace(own, name=labels.head_phrase(*other), head=other)


def untrained(own: Side, seed: int, _text: str | None) -> tuple[str, Side]:
    """The same tokens through a model of the same shape with fresh weights."""
    assert own.opened is not None
    twin = per_run.untrained(own.opened, seed)
    named = f"untrained twin, seed {seed}"
    return f"{own.opened.asked.model}, trained", replace(own, name=named, run=twin, opened=None)


def other_run(mode: str, own: Side, value: Any, text: str | None) -> tuple[str, Side]:
    """Another translation: of another text, decoding or model, or with a given target."""
    assert own.opened is not None
    asked, method = own.opened.asked, own.opened.translation.method
    text = clean(text or usual_text(own.opened, mode)) if mode in ("forced", "sentence") else ""
    if mode == "model":
        if value not in catalogue.available():
            raise ValueError("The address names a model that is not available; choose a model from the list.")
        asked = replace(asked, source=models.find(str(value)))
    ways: dict[str, tuple[tuple[str, str], dict[str, Any]]] = {
        "model": ((own.opened.asked.model, asked.model), {}),
        "decode": ((method, str(value)), {"decode": str(value), "target": None}),
        "forced": ((method, "your translation"), {"target": text}),
        "unchanged": (("changed", AS_IT_IS), {"changes": ()}),
        "sentence": (("your sentence", "the other sentence"), {"text": text, "target": None}),
    }
    names, more = ways[mode]
    asked = replace(asked, **more)
    run = runs.translate(asked)
    opened = Opened(asked, run, None)
    return names[0], Side(names[1], run, own.kind, fitted(opened, own.kind, own.head), opened)


def fitted(opened: Opened | None, kind: str, head: Head) -> Head:
    """The head of a model that is nearest to one that is asked for."""
    assert opened is not None
    return fitting.fit_head(kind, head, opened.source.sizes[kind], head)[0]


@dataclass(frozen=True)
class Mode:
    """A way of comparing."""

    label: str
    # the name of side A, and side B; gets side A, the value in the address, and the other text
    other: Callable[[Side, Any, str | None], tuple[str, Side]]
    first: Callable[[Opened, Side], Any] = lambda opened, own: None  # the value that it opens with
    width: int = 0  # px of its second control; 0 if it has none
    # that control's label and choices
    choices: Callable[[Opened, Side, Any], tuple[str, dict[Any, str]]] | None = None


def heads(opened: Opened, own: Side, _value: Any) -> tuple[str, dict[Any, str]]:
    """All heads of the kind."""
    layers, count = opened.translation.config.sizes[own.kind]
    places = ((i, j) for i in range(layers) for j in range(count))
    return "The other head", {place: labels.head_phrase(*place) for place in places}


def next_head(opened: Opened, own: Side) -> Head:
    """The head beside the chosen one."""
    return own.head[0], (own.head[1] + 1) % opened.translation.config.sizes[own.kind][1]


def another_model(opened: Opened, _own: Side) -> str:
    """The first other model, if there is one."""
    return next((name for name in catalogue.available() if name != opened.asked.model), opened.asked.model)


MODES = {
    "unchanged": Mode("the run without changes", partial(other_run, "unchanged")),
    "uniform": Mode(
        "uniform attention (a control)",
        lambda own, value, text: (
            labels.head_phrase(*own.head),
            replace(own, name="uniform attention", is_uniform=True),
        ),
    ),
    "untrained": Mode("an untrained twin (a control)", untrained, lambda opened, own: 1, 140),
    "head": Mode("another head", other_head, next_head, 220, heads),
    "decode": Mode(
        "another way of decoding",
        partial(other_run, "decode"),
        lambda opened, own: other_decoding(opened),
        220,
        lambda opened, own, value: ("The other way of decoding", options.decodings(str(value), DECODINGS)),
    ),
    "forced": Mode("a translation of your own", partial(other_run, "forced"), width=500),
    "sentence": Mode("another sentence", partial(other_run, "sentence"), width=500),
    "model": Mode(
        "another model",
        partial(other_run, "model"),
        another_model,
        315,
        lambda opened, own, value: ("The other model", {name: name for name in catalogue.available()}),
    ),
}


def against_of(opened: Opened, now: State) -> Against:
    """The comparison of a state; an example opens with its other sentence, another text with the control."""
    return now.against or (("uniform", None) if opened.example is None else ("sentence", None))


def sides(opened: Opened, now: State, kind: str) -> tuple[Side, Side]:
    """Both sides, in the measure that both can show; ValueError, in a sentence, if B cannot be made."""
    mode, value = against_of(opened, now)
    own = Side("", opened.translation, kind, getattr(now, kind), opened)
    name, second = MODES[mode].other(own, value, now.other)
    words = mode == "model" and own.run.source_tokens != second.run.source_tokens
    pair = replace(own, name=name), second
    measure = "weight" if unmeasured(pair, now.measure) else now.measure
    first, second = (replace(each, measure=measure, words=words) for each in pair)
    return first, second


def unmeasured(pair: tuple[Side, Side], measure: str) -> str | None:
    """Why two sides cannot be compared in a measure, in one sentence; None if they can."""
    if measure == "weight":
        return None
    if measure == "effect":
        return "Effects are nats and no shares of a row, so this page compares weights or what they carried."
    if any(each.is_uniform for each in pair):
        return "Uniform attention is a formula that carries nothing; the maps show weights."
    if any(each.opened is None for each in pair):
        return "What keys carried is not measured in an untrained twin; the maps show weights."
    reasons = (lacking(each.opened, measure) for each in pair if each.opened is not None)
    return next((why for why in reasons if why), None)


def notes(opened: Opened, now: State, other: Side) -> Iterator[str]:
    """Remarks on side B: a cut, the same text as A, another head than asked for."""
    own, run, (mode, value) = opened.translation, other.run, against_of(opened, now)
    yield from (f"B: {each}" for each in (run.notes if run is not own else ()))
    encoder = other.kind == "encoder"
    remarks = {
        "The two models have different pieces, so both maps are read by words.": other.words,
        "The encoder reads the source alone, and A and B have the same one: nothing can differ.": encoder
        and mode in {"decode", "forced"},
        "A and B are the same translation.": not encoder
        and mode in {"decode", "forced"}
        and run.text == own.text,
        "A and B are the same model, so nothing can differ.": mode == "model" and value == opened.asked.model,
        "A and B are the same sentence.": mode == "sentence" and run.source_text == own.source_text,
        "Nothing is changed, so A and B are the same run.": mode == "unchanged" and not now.changes,
        "A and B are the same head, so nothing can differ.": mode == "head"
        and other.head == getattr(now, other.kind),
    }
    yield from (remark for remark, holds in remarks.items() if holds)
    if mode == "head":
        size = own.config.sizes[other.kind]
        yield from (f"B: {each}" for each in fitting.fit_head(other.kind, value, size, value)[1])
