"""The two sides of a comparison: the visitor's selection (A), and with what it is compared (B)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from explorer.app.address import State
from explorer.app.address.page_values import Against, Comparison
from explorer.app.maps.looking import HeadSelection, looks_of
from explorer.app.server import models, per_run, runs
from explorer.app.server.view import View
from explorer.app.shell import fitting
from explorer.figures.base import labels
from explorer.lenses.what_if.two_runs import Map
from explorer.lenses.words.reading import Reading, ReadView, read_tokens
from transformer.config import Head
from transformer.text.typed import clean

AS_IT_IS = "as it is"
OTHER_SENTENCE = "The man who wrote the letter is my brother."
CELLS = 40  # most rows and columns of a map


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str  # for the visitor
    look: HeadSelection
    is_uniform: bool = (
        False  # whether the weights are 1 / visible keys instead of those of the head
    )

    @cached_property
    def map(self) -> Map:
        weights, mask = self.look.whole()
        rows, columns = map(read_tokens, self.look.tokens, self.look.axes)
        if self.is_uniform:  # a row without keys is all zeros
            weights = (mask / mask.sum(-1, keepdims=True).clip(1)).astype(np.float32)
        return Map(rows, columns, weights, mask)

    def view(self, row: int, column: int) -> ReadView:
        """The map around a row and a column; a formula has no scores."""
        down, across = self.look.axes
        view = replace(self.look, cell=(down[row].start, across[column].start)).read()
        cells = view.window.queries, view.window.keys
        return (
            replace(view, scores=None, weights=self.map.weights[cells]) if self.is_uniform else view
        )


def usual_text(opened: View, mode: str) -> str:
    """The text to start from: the translation, to be edited, or a sentence that differs in a
    word."""
    if mode == "forced":
        return opened.translation.text
    return OTHER_SENTENCE if opened.example is None else opened.example.other


def first_value(opened: View, kind: str, head: Head, mode: str) -> Any:
    """The value with which a way of comparing opens: a seed, the next head, another model."""
    if mode == "untrained":
        return 1
    if mode == "head":
        return head[0], (head[1] + 1) % opened.source.sizes[kind][1]
    names = models.available() if mode == "model" else ()
    return next(
        (name for name in names if name != opened.run_key.model),
        opened.run_key.model if names else None,
    )


def against_of(opened: View, now: State) -> Against:
    return now.values(Comparison).against or (
        ("uniform", None) if opened.example is None else ("sentence", None)
    )


def second_side(first: Side, mode: str, value: Any, text: str | None) -> tuple[str, Side]:
    """The name of side A, and side B; ValueError, in a sentence, if B cannot be made."""
    look, opened = first.look, first.look.opened
    here = labels.head_phrase(*look.head)
    method = opened.translation.method
    asked = opened.run_key
    if mode == "uniform":
        return here, Side("uniform attention", look, True)
    if mode == "head":
        other = fitting.fit_head(look.kind, value, opened.source.sizes[look.kind], value)
        return here, Side(labels.head_phrase(*other), replace(look, head=other))
    if mode == "untrained":
        twin = View(asked, per_run.untrained(opened, value), None)
        return f"{asked.model}, trained", Side(
            f"untrained twin, seed {value}", replace(look, opened=twin)
        )
    if mode == "model" and value not in models.available():
        raise ValueError(
            "The address names a model that is not available; choose a model from the list."
        )
    typed = clean(text or usual_text(opened, mode)) if mode in ("forced", "sentence") else ""
    names, more = {
        "model": ((asked.model, str(value)), {}),
        "forced": ((method, "your translation"), {"target": typed}),
        "unchanged": (("changed", AS_IT_IS), {"changes": ()}),
        "sentence": (("your sentence", "the other sentence"), {"text": typed, "target": None}),
    }[mode]
    source = models.find(str(value)) if mode == "model" else asked.source
    asked = replace(asked, source=source, **more)  # type: ignore[arg-type]
    head = fitting.fit_head(look.kind, look.head, source.sizes[look.kind], look.head)
    return names[0], Side(
        names[1], replace(look, opened=View(asked, runs.translate(asked), None), head=head)
    )


def sides(opened: View, now: State, kind: str) -> tuple[Side, Side]:
    """Both sides, by words if their models have different pieces; raises as `second_side`."""
    look = replace(looks_of(opened, now)[kind], reading=Reading(), measure="weight", most=CELLS)
    mode, value = against_of(opened, now)
    name, second = second_side(Side("", look), mode, value, now.values(Comparison).other)
    words = (
        mode == "model"
        and opened.translation.source_tokens != second.look.opened.translation.source_tokens
    )
    looks = (replace(each, reading=Reading(words)) for each in (look, second.look))
    return Side(name, next(looks)), replace(second, look=next(looks))


def notes(opened: View, now: State, other: HeadSelection) -> Iterator[str]:
    """Remarks on side B: a cut, the same as A, another head than asked for."""
    own = opened.translation
    run = other.opened.translation
    (mode, value) = against_of(opened, now)
    yield from (f"B: {each}" for each in (run.notes if run is not own else ()))
    if other.reading.words:
        yield "The two models have different pieces, so both maps are read by words."
    if mode == "forced" and other.kind == "encoder":
        yield "The encoder reads the source alone, and A and B have the same one: nothing can differ."
    elif mode == "forced" and run.text == own.text:
        yield "A and B are the same translation."
    elif mode == "model" and value == opened.run_key.model:
        yield "A and B are the same model, so nothing can differ."
    elif mode == "sentence" and run.source_text == own.source_text:
        yield "A and B are the same sentence."
    elif mode == "unchanged" and not now.changes:
        yield "Nothing is changed, so A and B are the same run."
    elif mode == "head" and other.head == getattr(now, other.kind):
        yield "A and B are the same head, so nothing can differ."
    if mode == "head":
        size = own.config.sizes[other.kind]
        notes = list[str]()
        fitting.fit_head(other.kind, value, size, value, notes.append)
        yield from (f"B: {note}" for note in notes)
