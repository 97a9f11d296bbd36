"""The meaning of an event of the linked view, in pure functions that tests can call without a
browser."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from transformer.config import Head

Together = Literal["mean", "sum"]
"""How the rows of several tokens become one."""


@dataclass(frozen=True)
class Chosen:
    """Several tokens that the visitor looks at as one: of each side none, or two and more."""

    steps: tuple[int, ...] = ()  # decode steps, from 0, in their order
    sources: tuple[int, ...] = ()  # source tokens, from 0, in their order
    together: Together = "mean"

    def of_rows(self, kind: str) -> tuple[int, ...]:
        """Those that have rows in the maps of a kind of attention."""
        if kind == "encoder":
            return self.sources
        return self.steps


@dataclass(frozen=True)
class Cursor:
    """The visitor's position in a translation."""

    step: int = 0  # the decode step, from 0
    source: int | None = None  # the source token that was clicked, from 0; None follows the step
    ack: int = 0  # the number of the last event accepted from the browser
    chosen: Chosen = Chosen()  # the tokens that are looked at together with those of the cursor


@dataclass(frozen=True)
class CursorRange:
    """Range of a cursor in one translation, and the name of the translation that events must
    give."""

    trace: str  # the name of the translation
    steps: int  # number of decode steps
    sources: int  # number of source tokens


def _position(value: object, length: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return int(max(min(value, length - 1), 0))


def several(positions: Iterable[int], length: int) -> tuple[int, ...]:
    """The positions that a text has, in its order; one alone is no choice of several."""
    inside = sorted({position for position in positions if 0 <= position < length})
    if len(inside) < 2:
        return ()
    return tuple(inside)


def _chosen(event: Mapping[object, object], limits: CursorRange) -> Chosen:
    """The tokens that an event chooses; what is malformed chooses none."""
    tokens = event.get("chosen")
    if not isinstance(tokens, Mapping):
        return Chosen()
    together: Together = "mean"
    if tokens.get("together") == "sum":
        together = "sum"
    return Chosen(
        steps=several(_whole_numbers(tokens.get("steps")), limits.steps),
        sources=several(_whole_numbers(tokens.get("sources")), limits.sources),
        together=together,
    )


def _whole_numbers(values: object) -> list[int]:
    """A list of whole numbers; an empty one if it is none."""
    if not isinstance(values, list) or not all(type(number) is int for number in values):
        return []
    return values


def reduce(cursor: Cursor, event: object, limits: CursorRange) -> Cursor:
    """Moves the cursor as an event says; a malformed, late or foreign event changes nothing."""
    if not isinstance(event, Mapping):
        return cursor
    number = event.get("seq")
    if not isinstance(number, int) or isinstance(number, bool) or number <= cursor.ack:
        return cursor
    cursor = replace(cursor, ack=number)
    step = _position(event.get("step"), limits.steps)
    if event.get("trace") != limits.trace or step is None:
        return cursor
    source = _position(event.get("source"), limits.sources)
    return replace(cursor, step=step, source=source, chosen=_chosen(event, limits))


def picked_candidate(event: object, limits: CursorRange) -> tuple[int, int] | None:
    """The step (from 0; without steps, the source token) and the token id of the candidate that
    the visitor chose; None if none was."""
    if not isinstance(event, Mapping) or event.get("trace") != limits.trace:
        return None
    chosen = event.get("candidate")
    if (
        not isinstance(chosen, list)
        or len(chosen) != 2
        or not all(type(number) is int for number in chosen)
    ):
        return None
    position, token_id = chosen
    if 0 <= position < (limits.steps or limits.sources) and token_id >= 0:
        return position, token_id
    return None


def presented(event: object) -> dict[str, bool]:
    """Whether the visitor presents, as `{"present": …}`; empty if the event does not say."""
    present = event.get("present") if isinstance(event, Mapping) else None
    return {"present": present} if isinstance(present, bool) else {}


def picked_head(
    event: object, limits: CursorRange, sizes: Mapping[str, Head], what: str = "head"
) -> dict[str, Head]:
    """The head that the visitor chose, by kind; empty if the event chooses none."""
    if not isinstance(event, Mapping) or event.get("trace") != limits.trace:
        return {}
    head = event.get(what)
    if not isinstance(head, list) or len(head) != 3 or head[0] not in sizes:
        return {}
    layers, heads = sizes[head[0]]
    layer = _position(head[1], layers)
    number = _position(head[2], heads)
    if layer is None or number is None:
        return {}
    return {head[0]: (layer, number)}
