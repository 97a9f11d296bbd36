"""The kinds of values that an address may hold: how to read and write each. Addresses count from 1.

Reading raises ValueError if a value means nothing; a number out of range moves to the nearest end.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from transformer.config import Head

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

V = TypeVar("V")
Moves = dict[str, Any]
"""New values of the state, by the names of an address's parameters."""

SAMPLE = "sample-"
BEAM = "beam-"
LARGEST_BEAM, MOST_DRAWS = 8, 16
MOST_WRITTEN = 1_000
"""Most tokens that a model writes after a text."""
USUAL_WRITTEN = 40
"""Tokens that it writes if nobody says how many."""
HIDEABLE = ("special", "punctuation")
"""Tokens that a map can leave out."""
LARGEST_SEED = 2**31 - 1

HandLinks = frozenset[tuple[int, int, bool]]
"""Word links: source word, target word (from 0), and whether the link is sure or only possible."""
MOST_PAIRS = 1_000


class UnreadableError(ValueError):
    """A value in the address cannot be read."""


@dataclass(frozen=True)
class Kind(Generic[V]):
    """A kind of value in an address: read (raising ValueError) and written."""

    read: Callable[[str], V]
    write: Callable[[V], str] = str
    choices: tuple[V, ...] = ()  # the values, if there are few
    ends: tuple[V, V] | None = None  # the smallest and the largest, if it is a number
    step: float | None = None  # between two numbers of a slider; 1 or 0.01 if None


@dataclass(frozen=True)
class Key:
    """A value of an address: how it is written, and where it counts."""

    kind: Kind[Any]
    default: object = None  # what an address leaves out; None lets the app choose
    long: bool = False  # whether it may be too long for an address


@overload
def parameter(kind: Kind[V], default: None = None, *, long: bool = ...) -> V | None: ...
@overload
def parameter(kind: Kind[V], default: V, *, long: bool = ...) -> V: ...
def parameter(kind: Kind[V], default: V | None = None, *, long: bool = False) -> V | None:
    """A field of a dataclass that an address carries under the field's name."""
    return field(default=default, metadata={"key": Key(kind, default, long)})


def keys_of(values: "type[DataclassInstance]") -> Mapping[str, Key]:
    """The keys of a dataclass by the names of its fields; a field that is no `parameter` has none."""
    return {
        declared.name: declared.metadata["key"] for declared in fields(values) if declared.metadata
    }


TEXT = Kind(str)


def one_of(*choices: V) -> Kind[V]:
    """One of a few names or numbers."""
    known = {str(choice): choice for choice in choices}

    def read(value: str) -> V:
        if value not in known:
            raise UnreadableError
        return known[value]

    return Kind(read, choices=choices)


def matching(
    pattern: str,
    make: Callable[[re.Match[str]], V],  # what a text of that form means
    write: Callable[[V], str],
) -> Kind[V]:
    """A text of a form."""
    form = re.compile(pattern, re.ASCII)

    def read(value: str) -> V:
        if (found := form.fullmatch(value)) is None:
            raise UnreadableError
        return make(found)

    return Kind(read, write)


def several(kind: Kind[V], mark: str, most: int | None = None) -> Kind[tuple[V, ...]]:
    """Different values of a kind with a mark between them."""
    return Kind(
        lambda text: tuple(dict.fromkeys(map(kind.read, text.split(mark))))[:most],
        lambda values: mark.join(map(kind.write, values)),
    )


def whole(low: int, high: int, step: int = 1) -> Kind[int]:
    """A whole number, clamped to a range and rounded down to a multiple of a step."""

    def read(value: str) -> int:
        return int(_clamped(low, high, value)) // step * step

    return Kind(read, ends=(low, high), step=step)


def decimal(low: float, high: float, step: float = 0.01) -> Kind[float]:
    """A number with at most two decimals, clamped to a range; a slider moves by a step."""

    def read(value: str) -> float:
        return round(_clamped(low, high, value), 2)

    return Kind(read, "{:g}".format, ends=(low, high), step=step)


def _clamped(low: float, high: float, value: str) -> float:
    if math.isnan(number := float(value)):
        raise UnreadableError
    return min(max(number, low), high)


YES = Kind(lambda value: one_of("yes", "no").read(value) == "yes", lambda value: "yes")


def read_position(value: str) -> int:
    try:
        number = float(value)
    except ValueError as error:
        raise UnreadableError from error
    if math.isnan(number):
        raise UnreadableError
    return int(min(max(number, 1), 1e6)) - 1


POSITION = Kind(read_position, lambda value: str(value + 1))
MOST_POSITIONS = 4_096
"""Positions beyond this are left out of an address, where a range names many in a few letters."""


def _read_positions(value: str) -> tuple[int, ...]:
    positions = dict[int, None]()
    for run in value.split("."):
        ends = run.split("-", 1)
        start = read_position(ends[0])
        stop = read_position(ends[-1])
        if stop < start:
            raise UnreadableError
        left = MOST_POSITIONS - len(positions)
        positions |= dict.fromkeys(range(start, min(stop + 1, start + left)))
    return tuple(sorted(positions))


def _write_positions(positions: tuple[int, ...]) -> str:
    runs = list[tuple[int, int]]()
    for position in positions:
        if runs and position == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], position
        else:
            runs.append((position, position))
    return ".".join(_write_run(*run) for run in runs)


def _write_run(first: int, last: int) -> str:
    if first == last:
        return str(first + 1)
    return f"{first + 1}-{last + 1}"


POSITIONS = Kind(_read_positions, _write_positions)
"""Several positions, with neighbours as a range: `3-5.8`."""
AS_ONE = -1
"""In place of a sentence of a text: all of it, as one run."""
SENTENCE = Kind(
    lambda value: AS_ONE if value == "all" else read_position(value),
    lambda value: "all" if value == AS_ONE else str(value + 1),
)
_BREAKS = r"\r\n|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]"
LINE = Kind(lambda value: re.sub(f"({_BREAKS})+", " ", value))
"""A text of one line: a field would drop its line breaks, and join the words around them."""
LINES = Kind(lambda value: re.sub(_BREAKS, "\n", value))
"""A text that keeps its line breaks, whichever sign they were."""


def read_head(value: str) -> Head:
    layer, dot, head = value.partition(".")
    if not dot:
        raise UnreadableError
    return read_position(layer), read_position(head)


def write_head(head: Head) -> str:
    return f"{head[0] + 1}.{head[1] + 1}"


HEAD = Kind(read_head, write_head)


def numbered(*words: str, **ends: tuple[int, int]) -> Kind[str]:
    """One of some words, or one of some names with a number between its ends: `beam-4`."""

    def read(value: str) -> str:
        name, _, number = value.partition("-")
        if value in words:
            return value
        if name not in ends or not (number.isascii() and number.isdigit()):
            raise UnreadableError
        low, high = ends[name]
        return f"{name}-{min(max(int(number[:10]), low), high)}"

    return Kind(read)


DECODE = numbered("greedy", beam=(2, LARGEST_BEAM), sample=(0, LARGEST_SEED))
GOLD_PAIR = numbered(sample=(1, 10**6), file=(1, 10**6))
LINKS = numbered(mass=(0, 100), weight=(0, 100))


PAIR = matching(
    r"(\d{1,4})([-p])(\d{1,4})",
    lambda found: (read_position(found[1]), read_position(found[3]), found[2] == "-"),
    lambda link: f"{link[0] + 1}{'-' if link[2] else 'p'}{link[1] + 1}",
)
_PAIRS = several(PAIR, ",", MOST_PAIRS)
PAIRS: Kind[HandLinks] = Kind(
    lambda text: frozenset(_PAIRS.read(text)),
    lambda links: _PAIRS.write(tuple(sorted(links))),
)


def _read_hide(value: str) -> tuple[str, ...]:
    names = value.split(".")
    if not set(names) <= set(HIDEABLE):
        raise UnreadableError
    return tuple(name for name in HIDEABLE if name in names)


HIDDEN = Kind(_read_hide, ".".join)


LANGUAGE = matching(r">>[^\s<>]{1,40}<<|<2\w{2,12}>|\w{2,12} \w{2,12}", lambda form: form[0], str)
LESSON = matching(
    r"([a-z0-9][a-z0-9-]{0,39})\.(\d{1,3})",
    lambda found: (found[1], read_position(found[2])),
    lambda at: f"{at[0]}.{at[1] + 1}",
)
"""The name of a lesson, and its step."""
HEADS = several(HEAD, "_", 3)
