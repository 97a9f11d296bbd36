"""One codec for interventions: a frozen dataclass with declared fields, as compact text and as JSON.

A field is ``Annotated[type, kind]``, or ``Annotated[type | None, kind, "all"]`` if None has a text. Its
``Kind`` converts, checks, writes and reads it, so a value that means nothing is refused when it is made.

JSON counts from 0, as programs do: ``{"do": "ablate", "kind": "cross", "layer": 1, "head": [5], …}``.
The compact text counts from 1, as people do: ``ablate_cross_2.6_mean~choose_4_▁ist`` ablates head 6 of layer
2 and chooses the token of step 4. ``~`` separates changes and ``_`` separates fields; inside a field, both
and ``%`` are written as ``%7E``, ``%5F`` and ``%25``. Apart from pieces and texts, a field uses only
characters that an address holds unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType
from typing import Any, ClassVar, NamedTuple, Self, get_args, get_type_hints

from transformer.text import kinds

Json = dict[str, Any]
MOST_CHANGES = 64
LONGEST = 20_000
"""Most characters of a compact text."""
MOST_ITEMS = 4096
DAMAGES = (ValueError, TypeError, IndexError, KeyError, AttributeError)


class InterventionError(ValueError):
    """A change that cannot be made; the message says why in one sentence, and counts from 1."""


Check = Callable[[Any, Any, Any], None]
"""(value, change, ``RunShape``): raises InterventionError if the request has no such place."""


def unchecked(_value: Any, _change: Any, _shape: Any) -> None:
    """The check of what any request takes."""


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return str(value) if isinstance(value, str) else value


@dataclass(frozen=True, eq=False)
class Kind:
    """What the value of a field may be: kinds differ in these functions."""

    convert: Callable[[Any], Any]  # what may be set → the value; InterventionError if it means nothing
    check: Check = unchecked
    write: Callable[[Any], Any] = str  # value → a part of the compact text
    read: Callable[[Any], Any] = str  # a part of the compact text → what ``convert`` takes
    to_json: Callable[[Any], Any] = _to_json
    from_json: Callable[[Any], Any] = lambda value: value
    words: Callable[[Any], str] = str  # value, also None → how a sentence names it
    rest: bool = False  # always last: ``write`` gives and ``read`` takes a list, all parts that are left


class Field(NamedTuple):
    kind: Kind
    optional: bool  # whether it may be None
    none: str | None  # None in the compact text; it is left out there without it


def _fields_of(owner: Any) -> dict[str, Field]:
    hints, found = get_type_hints(owner, include_extras=True), {}
    for name in (field.name for field in fields(owner)):
        held, kind, *none = get_args(hints[name])
        found[name] = Field(kind, NoneType in get_args(held), none[0] if none else None)
    return found


fields_of: Callable[[Any], dict[str, Field]] = cache(_fields_of)
"""The declared fields of a class by name, in order."""


class Encodable:
    """A value with declared fields; every subclass is a frozen dataclass of them."""

    name: ClassVar[str]
    """Its name in JSON and in the compact text."""
    known: ClassVar[dict[str, Any]]
    """By name, the classes of the same family; each enters when it is made."""
    order: ClassVar[tuple[str, ...]] = ()
    """Fields in the order of the compact text, if it is another."""
    says: ClassVar[str]
    """The sentence that people read, in captions and in the badge, with names of fields; it counts from 1."""

    def __init_subclass__(cls, name: str = "", **constants: Any) -> None:
        for constant, value in constants.items():
            setattr(cls, constant, value)
        if name:
            cls.name, cls.known[name] = name, cls

    def __post_init__(self) -> None:
        for name, field in fields_of(type(self)).items():
            value = getattr(self, name)
            if value is not None or not field.optional:
                object.__setattr__(self, name, field.kind.convert(value))

    def check(self, shape: Any) -> None:
        """Raises InterventionError if the request, a ``RunShape``, has no such place."""
        for name, field in fields_of(type(self)).items():
            if (value := getattr(self, name)) is not None:
                field.kind.check(value, self, shape)

    def to_parts(self) -> list[str]:
        """The fields of the compact text."""
        parts, declared = list[str](), fields_of(type(self))
        for name in self.order or declared:
            (kind, _, none), value = declared[name], getattr(self, name)
            if value is not None:
                parts += kind.write(value) if kind.rest else [kind.write(value)]
            elif none is not None:
                parts.append(none)
        return parts

    @classmethod
    def from_parts(cls, parts: list[str]) -> Self:
        """Reads what ``to_parts`` wrote, and empties it; ValueError if something is left."""
        values, declared = dict[str, Any](), fields_of(cls)
        for name in cls.order or declared:
            kind, optional, none = declared[name]
            if optional and parts[:1] == ([] if none is None else [none]):
                values[name], taken = None, 1
            else:
                taken = len(parts) if kind.rest else 1
                values[name] = kind.read(parts[:] if kind.rest else parts[0])
            del parts[:taken]
        value = cls(**values)
        if parts:
            raise ValueError(f"{len(parts)} parts too many")
        return value

    def to_json(self) -> Json:
        """All fields as JSON."""
        return {
            name: field.kind.to_json(getattr(self, name)) for name, field in fields_of(type(self)).items()
        }

    @classmethod
    def from_json(cls, values: Json) -> Self:
        """Reads what ``to_json`` wrote."""
        return cls(**{name: fields_of(cls)[name].kind.from_json(value) for name, value in values.items()})

    def __str__(self) -> str:
        declared = fields_of(type(self)).items()
        return self.says.format(**{name: field.kind.words(getattr(self, name)) for name, field in declared})


class Intervention(Encodable):
    """One change of a run: a value that can be printed, compared, kept as a key and written to a file."""

    known: ClassVar[dict[str, Any]] = {}

    @property
    def needs_stream(self) -> bool:
        """True if only the residual stream shows what it did."""
        return False


def write_text(changes: Iterable[Intervention]) -> str:
    """Interventions as compact text; empty without any."""
    lists = ([change.name, *change.to_parts()] for change in changes)
    return "~".join("_".join(re.sub("[%~_]", _escape, part) for part in parts) for parts in lists)


def _escape(sign: re.Match[str]) -> str:
    return f"%{ord(sign[0]):02X}"


def read_text(text: str) -> tuple[Intervention, ...]:
    """Reads what ``write_text`` wrote; InterventionError if the text is too long, or holds something else."""
    if len(text) > LONGEST:
        raise InterventionError(f"The changes take more than {LONGEST:,} characters.")
    return at_most([_of_text(change) for change in text.split("~")] if text else [])


def _of_text(text: str) -> Intervention:
    name, *parts = (re.sub("%(25|7E|5F)", lambda at: chr(int(at[1], 16)), part) for part in text.split("_"))
    return _read(name, repr(name), text, lambda cls: cls.from_parts(parts))


def to_json(changes: Iterable[Intervention]) -> list[Json]:
    """Interventions as JSON values."""
    return [{"do": change.name, **change.to_json()} for change in changes]


def from_json(values: Any) -> tuple[Intervention, ...]:
    """Reads what ``to_json`` wrote; InterventionError if the values are something else."""
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise InterventionError("Changes are a list of objects.")
    return at_most([_of_json(value) for value in values])


def _of_json(values: Json) -> Intervention:
    fields, name = {name: value for name, value in values.items() if name != "do"}, str(values.get("do"))
    return _read(name, name, str(values), lambda cls: cls.from_json(fields))


def _read(name: str, quoted: str, source: str, read: Callable[[Any], Intervention]) -> Intervention:
    known = Intervention.known
    if name not in known:
        raise InterventionError(f"There is no change {quoted:.40}; known are {', '.join(known)}.")
    try:
        return read(known[name])
    except InterventionError:
        raise
    except DAMAGES as error:
        raise InterventionError(f"The change {source!r:.60} cannot be read.") from error


def at_most(changes: Sequence[Intervention]) -> tuple[Intervention, ...]:
    """Changes as a tuple; InterventionError if there are too many."""
    if len(changes) > MOST_CHANGES:
        raise InterventionError(f"A run takes at most {MOST_CHANGES} changes; there are {len(changes)}.")
    return tuple(changes)


_INDEX = kinds.whole(0, most=2**31 - 1)


def write_count(index: int) -> str:
    """A number from 0, counted from 1."""
    return str(index + 1)


def read_count(text: str) -> int:
    """Reads what ``write_count`` wrote."""
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise InterventionError(f"{text!r:.40} is not a number counted from 1.")
    return int(text) - 1


def must(holds: Callable[[Any], bool], wrong: str) -> Callable[[Any], Any]:
    """What takes a value as it is; the error may name the value, as ``{!r}``."""

    def convert(value: Any) -> Any:
        if not holds(value):
            raise InterventionError(wrong.format(value))
        return value

    return convert


def whole(what: str, check: Check = unchecked) -> Kind:
    """A whole number from 0."""
    return Kind(
        lambda value: _INDEX.check(what, value, InterventionError),
        check,
        write_count,
        read_count,
        words=write_count,
    )


def many(
    item: Kind,
    wrong: str,  # the error for what has no items; ``{!r}`` there is the value
    size: str,  # the error for too few or too many
    separator: str = "",  # between items in the compact text; without one, each is a part of its own
    least: int = 1,
    alone: bool = False,  # whether a whole number stands for a list of it
    finish: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple,
    check: Check = unchecked,
    words: Callable[[Any], str] = str,
) -> Kind:
    """Several values of a kind; a map is read as its pairs."""

    def convert(value: Any) -> tuple[Any, ...]:
        values = [value] if alone and isinstance(value, int) else value
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InterventionError(wrong.format(value))
        items = tuple(map(item.convert, values.items() if isinstance(values, Mapping) else values))
        if not least <= len(items) <= MOST_ITEMS:
            raise InterventionError(size)
        return finish(items)

    def write(values: tuple[Any, ...]) -> Any:
        parts = list(map(item.write, values))
        return separator.join(parts) if separator else parts

    def read(text: Any) -> list[Any]:
        return list(map(item.read, text.split(separator) if separator else text))

    return Kind(convert, check, write, read, words=words, rest=not separator)


def several(what: str, check: Check, words: Callable[[Any], str]) -> Kind:
    """One whole number or several, in order and without repetition; the last of them is checked."""
    return many(
        whole(what),
        f"{what} is {{!r:.40}}; it must be a whole number or several.",
        f"{what} must be from 1 to 4,096 numbers.",
        "-",
        alone=True,
        finish=lambda numbers: tuple(sorted(set(numbers))),
        check=lambda value, change, shape: check(value[-1], change, shape),
        words=words,
    )


def number(what: str, low: float = -1e6, high: float = 1e6) -> Kind:
    """A number within limits."""
    limits = kinds.number(low, high)
    return Kind(
        lambda value: float(limits.check(what, value, InterventionError)),
        write=repr,
        read=float,
        words=lambda value: f"{value:g}",
    )
