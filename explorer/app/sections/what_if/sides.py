"""The two sides of a comparison: the visitor's selection (A), and with what it is compared (B)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from explorer.app.address import State, session
from explorer.app.address.page_values import Against, Comparison, Detail
from explorer.app.maps.looking import HeadSelection, looks_of
from explorer.app.server import models, per_run, runs
from explorer.app.server.run_key import RunKey
from explorer.app.server.view import View
from explorer.app.shell import fitting
from explorer.app.shell.changed import written_by
from explorer.app.shell.needs import has
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


def first_value(opened: View, kind: str, head: Head, mode: str) -> Detail:
    """The value with which a way of comparing opens: a seed, the next head, another model."""
    match mode:
        case "untrained":
            return 1
        case "head":
            layer, number = head
            return layer, (number + 1) % opened.source.sizes[kind][1]
        case "model":
            name = opened.run_key.model
            names = comparable(kind)
            return next((other for other in names if other != name), name if names else None)
        case _:
            return None


def comparable(kind: str) -> list[str]:
    """The models that have a kind of attention."""
    return [name for name, source in models.available().items() if has(source, kind)]


def against_of(opened: View, now: State) -> Against:
    """What the selection is compared with: as the address says, else as the example suggests."""
    against = now.values(Comparison).against
    if against is not None:
        return against
    return ("uniform" if opened.example is None else "sentence"), None


def second_side(first: Side, mode: str, value: Detail, text: str | None) -> tuple[str, Side]:
    """The name of side A, and side B; ValueError, in a sentence, if B cannot be made."""
    look = first.look
    opened = look.opened
    here = labels.head_phrase(*look.head)
    run_key = opened.run_key
    match mode, value:
        case "uniform", _:
            return here, Side("uniform attention", look, True)
        case "head", tuple() as wanted:
            other = fitting.fit_head(look.kind, wanted, opened.source.sizes[look.kind], wanted)
            return here, Side(labels.head_phrase(*other), replace(look, head=other))
        case "untrained", int() as seed:
            twin = View(run_key, per_run.untrained(opened, seed), None)
            name = f"untrained twin, seed {seed}"
            return f"{run_key.model}, trained", Side(name, replace(look, opened=twin))
        case "model", str() as model if model in comparable(look.kind):
            other_key = RunKey.of(session.current(), models.find(model), run_key.text)
            return run_key.model, _other_run(look, other_key, model)
        case "model", _:
            raise ValueError(
                "The address names a model that is not available; choose a model from the list."
            )
        case "unchanged", _:
            return "changed", _other_run(look, replace(run_key, changes=()), AS_IT_IS)
    typed = text or usual_text(opened, mode)
    if mode == "forced":
        if not opened.source.writes:
            raise ValueError("This model writes no output, so there is none to compare with.")
        forced_key = replace(run_key, target=clean(typed))
        if "source" not in opened.sides:
            forced_key = RunKey.of(replace(session.current(), write=0), opened.source, typed)
        forced = _other_run(look, forced_key, f"your {written_by(opened.translation)}")
        return opened.translation.method, forced
    other_key = RunKey.of(replace(session.current(), target=None), opened.source, typed)
    return "your sentence", _other_run(look, other_key, "the other sentence")


def _other_run(look: HeadSelection, run_key: RunKey, name: str) -> Side:
    """The same head of another run, or the nearest that its model has."""
    head = fitting.fit_head(look.kind, look.head, run_key.source.sizes[look.kind], look.head)
    opened = View(run_key, runs.translate(run_key), None)
    return Side(name, replace(look, opened=opened, head=head))


def sides(opened: View, now: State, kind: str) -> tuple[Side, Side]:
    """Both sides, by words if their models have different pieces; raises as `second_side`."""
    look = replace(looks_of(opened, now)[kind], reading=Reading(), measure="weight", most=CELLS)
    mode, value = against_of(opened, now)
    name, second = second_side(Side("", look), mode, value, now.values(Comparison).other)
    words = mode == "model" and look.tokens != second.look.tokens
    looks = (replace(chosen, reading=Reading(words)) for chosen in (look, second.look))
    return Side(name, next(looks)), replace(second, look=next(looks))


def notes(opened: View, now: State, other: HeadSelection) -> Iterator[str]:
    """Remarks on side B: a cut, the same as A, another head than asked for."""
    main_run = opened.translation
    run = other.opened.translation
    mode, value = against_of(opened, now)
    yield from (f"B: {note}" for note in (run.notes if run is not main_run else ()))
    if other.reading.words:
        yield "The two models have different pieces, so both maps are read by words."
    if mode == "forced" and other.kind == "encoder":
        yield "The encoder reads the source alone, and A and B have the same one: nothing can differ."
    elif mode == "forced" and run.text == main_run.text:
        yield "A and B are the same output."
    elif mode == "model" and value == opened.run_key.model:
        yield "A and B are the same model, so nothing can differ."
    elif mode == "sentence" and other.opened.run_key.text == opened.run_key.text:
        yield "A and B are the same sentence."
    elif mode == "unchanged" and not now.changes:
        yield "Nothing is changed, so A and B are the same run."
    elif mode == "head" and other.head == getattr(now, other.kind):
        yield "A and B are the same head, so nothing can differ."
    if mode == "head" and isinstance(value, tuple):
        size = main_run.config.sizes[other.kind]
        notes = list[str]()
        fitting.fit_head(other.kind, value, size, value, notes.append)
        yield from (f"B: {note}" for note in notes)
