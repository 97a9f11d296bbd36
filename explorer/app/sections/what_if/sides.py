"""The two sides of a comparison: the visitor's selection (A), and with what it is compared (B)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from explorer.app.address import State
from explorer.app.address.kinds import (
    LINE,
    Kind,
    UnreadableError,
    read_decode,
    read_head,
    read_position,
    write_head,
)
from explorer.app.address.state import page_value
from explorer.app.maps import measures
from explorer.app.maps.looking import lacking
from explorer.app.server import catalogue, models, per_run, runs
from explorer.app.server.view import View
from explorer.app.shell import fitting
from explorer.figures.base import captions, labels
from explorer.lenses.what_if.two_runs import Map, uniform_weights
from explorer.lenses.words.reading import Axis, Reading, ReadView, read_axis, read_map, read_tokens
from transformer import AttentionKind, Translation, Window
from transformer.config import Head
from transformer.text.typed import clean
from transformer.view import AuditReport, HeadMap

MOST_SEED = 1_000
Against = tuple[str, Any]
"""What is compared with the selection: `uniform`, `untrained` with its seed, `head` with layer and head,
`decode` with a way of decoding, `model` with a name; `forced` and `sentence`, whose text is in `other`;
`unchanged`, the run without changes."""
AS_IT_IS = "as it is"
OTHER_SENTENCE = "The man who wrote the letter is my brother."
TRIED = ("beam-4", "greedy", *(f"sample-{seed}" for seed in range(1, 6)))
"""Ways of decoding, in the order in which they are tried until one writes something else."""


def _read_seed(value: str) -> int:
    return min(read_position(value) + 1, MOST_SEED)


def _read_against(value: str) -> Against:
    name, _, detail = value.partition("-")
    if name == "model" and detail:
        return name, detail
    readers: dict[str, Callable[[str], Any]] = {
        "head": read_head,
        "decode": read_decode,
        "untrained": _read_seed,
    }
    if name in readers:
        return name, readers[name](detail)
    if detail or name not in {"uniform", "forced", "sentence", "unchanged"}:
        raise UnreadableError
    return name, None


def _write_against(against: Against) -> str:
    name, detail = against
    if detail is None:
        return name
    return f"{name}-{write_head(detail) if name == 'head' else detail}"


page_value("against", Kind(_read_against, _write_against))
page_value("other", LINE, long=True)  # the other sentence or translation


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str  # the name of the side, for the visitor
    run: Translation  # the translation that the side shows
    kind: str  # encoder, decoder or cross
    head: Head  # layer and head, from 0
    opened: View | None = None  # the sentence, if what its keys carried can be measured
    is_uniform: bool = False  # whether the weights are 1 / visible keys instead of those of the head
    measure: str = "weight"  # what the cells say: `weight` or `carried`
    words: bool = False  # whether the map is read by words

    @cached_property
    def axes(self) -> tuple[tuple[tuple[str, ...], Axis], ...]:
        """Pieces that name rows (predicted in cross-attention, else read) and columns, and their reading."""
        named = self.run.labels(self.kind)
        rows = named.queries if self.kind == "decoder" else named.predicted or named.queries
        return tuple((each, read_axis(each, Reading(words=self.words))) for each in (rows, named.keys))

    @cached_property
    def map(self) -> Map:
        """The whole map."""
        weights, mask = runs.whole(self.run, self.kind, self.head)
        if self.is_uniform:
            weights = uniform_weights(mask)
        elif self.measure == "carried" and self.opened is not None:
            weights = measures.whole_carried(self.opened, self.kind, self.head)
        (rows, down), (columns, across) = self.axes
        weights, mask, _ = read_map(weights, mask, down, across)
        return Map(read_tokens(rows, down), read_tokens(columns, across), weights, mask)

    def place(self, cell: tuple[int, int]) -> list[int]:
        """The row and column of the map that hold a cell of pieces."""
        return [
            next((i for i, group in enumerate(axis.groups) if at < group.stop), len(axis.groups) - 1)
            for (_, axis), at in zip(self.axes, cell, strict=True)
        ]

    def view(self, window: Window) -> HeadMap:
        """A window of the map; of a formula, or read by words, there are no scores."""
        if not self.is_uniform and self.measure == "weight" and not self.words:
            return self.run.head(self.kind, *self.head, window=window)
        cells = window.queries, window.keys
        rows, keys = tuple(self.map.rows[cells[0]]), tuple(self.map.columns[cells[1]])
        cross = self.kind == "cross"
        return ReadView(
            *(AttentionKind(self.kind), *self.head, self.run.model, self.run.config.norm),
            *(rows, rows if cross else None, keys, window),
            *(None, self.map.mask[cells], self.map.weights[cells], AuditReport(())),
            hidden=np.zeros(len(rows), np.float32),
            rows=(),
            columns=(),
            named="predicted" if cross else "read",
            derived=True,
        )

    def origin(self) -> str:
        """Part of the caption on the source of the numbers, or on their checks."""
        if self.is_uniform:
            return "a formula, 1 / visible keys: no model computed this"
        audit = self.run.map(self.kind, *self.head).audit
        return str(captions.badge(audit, self.measure != "weight" or self.words)["text"])


# --- with what the selection is compared --------------------------------------------------------------------


def decoded(opened: View, way: str) -> str:
    """Output of a way of decoding; the translation on the screen if this run cannot be decoded again."""
    try:
        return runs.translate(replace(opened.request, decode=way, target=None)).text
    except ValueError:
        return opened.translation.text


def other_decoding(opened: View) -> str:
    """A way of decoding that writes another translation; if none of those tried does, merely another way."""
    ways = [way for way in TRIED if way != opened.request.decode]
    return next((way for way in ways if decoded(opened, way) != opened.translation.text), ways[0])


def usual_text(opened: View, mode: str) -> str:
    """The text to start from: another translation of the sentence, or a sentence that differs in a word."""
    if mode == "forced":
        return decoded(opened, other_decoding(opened))
    return OTHER_SENTENCE if opened.example is None else opened.example.other


def first_value(opened: View, kind: str, head: Head, mode: str) -> Any:
    """The value with which a way of comparing opens: a seed, the next head, another decoding or model."""
    if mode == "untrained":
        return 1
    if mode == "head":
        return head[0], (head[1] + 1) % opened.source.sizes[kind][1]
    if mode == "decode":
        return other_decoding(opened)
    names = catalogue.available() if mode == "model" else ()
    return next(
        (name for name in names if name != opened.request.model), opened.request.model if names else None
    )


def against_of(opened: View, now: State) -> Against:
    """The comparison of a state; an example opens with its other sentence, another text with the control."""
    return now.against or (("uniform", None) if opened.example is None else ("sentence", None))


def second_side(first: Side, opened: View, mode: str, value: Any, text: str | None) -> tuple[str, Side]:
    """The name of side A, and side B; ValueError, in a sentence, if B cannot be made."""
    here, method, asked = labels.head_phrase(*first.head), opened.translation.method, opened.request
    if mode == "uniform":
        return here, replace(first, name="uniform attention", is_uniform=True)
    if mode == "head":
        other = fitting.fit_head(first.kind, value, opened.source.sizes[first.kind], value)[0]
        return here, replace(first, name=labels.head_phrase(*other), head=other)
    if mode == "untrained":
        twin = per_run.untrained(opened, value)
        name = f"untrained twin, seed {value}"
        return f"{asked.model}, trained", replace(first, name=name, run=twin, opened=None)
    if mode == "model" and value not in catalogue.available():
        raise ValueError("The address names a model that is not available; choose a model from the list.")
    typed = clean(text or usual_text(opened, mode)) if mode in ("forced", "sentence") else ""
    names, more = {
        "model": ((asked.model, str(value)), {}),
        "decode": ((method, str(value)), {"decode": str(value), "target": None}),
        "forced": ((method, "your translation"), {"target": typed}),
        "unchanged": (("changed", AS_IT_IS), {"changes": ()}),
        "sentence": (("your sentence", "the other sentence"), {"text": typed, "target": None}),
    }[mode]
    source = models.find(str(value)) if mode == "model" else asked.source
    asked = replace(asked, source=source, **more)  # type: ignore[arg-type]
    run = runs.translate(asked)
    head = fitting.fit_head(first.kind, first.head, source.sizes[first.kind], first.head)[0]
    return names[0], Side(names[1], run, first.kind, head, View(asked, run, None))


def sides(opened: View, now: State, kind: str) -> tuple[Side, Side]:
    """Both sides, in the measure that both can show; raises as `second_side`."""
    own = Side("", opened.translation, kind, getattr(now, kind), opened)
    mode, value = against_of(opened, now)
    name, second = second_side(own, opened, mode, value, now.other)
    pair = replace(own, name=name), second
    words = mode == "model" and own.run.source_tokens != second.run.source_tokens
    measure = "weight" if unmeasured(pair, now.measure) else now.measure
    one, other = (replace(each, measure=measure, words=words) for each in pair)
    return one, other


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


def notes(opened: View, now: State, other: Side) -> Iterator[str]:
    """Remarks on side B: a cut, the same as A, another head than asked for."""
    own, run, (mode, value) = opened.translation, other.run, against_of(opened, now)
    yield from (f"B: {each}" for each in (run.notes if run is not own else ()))
    if other.words:
        yield "The two models have different pieces, so both maps are read by words."
    if mode in ("decode", "forced"):
        if other.kind == "encoder":
            yield "The encoder reads the source alone, and A and B have the same one: nothing can differ."
        elif run.text == own.text:
            yield "A and B are the same translation."
    elif mode == "model" and value == opened.request.model:
        yield "A and B are the same model, so nothing can differ."
    elif mode == "sentence" and run.source_text == own.source_text:
        yield "A and B are the same sentence."
    elif mode == "unchanged" and not now.changes:
        yield "Nothing is changed, so A and B are the same run."
    elif mode == "head":
        if other.head == getattr(now, other.kind):
            yield "A and B are the same head, so nothing can differ."
        size = own.config.sizes[other.kind]
        yield from (f"B: {each}" for each in fitting.fit_head(other.kind, value, size, value)[1])
