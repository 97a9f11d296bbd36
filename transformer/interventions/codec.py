"""The codec of interventions: a frozen dataclass with declared fields, as compact text and as JSON.

A field is ``Annotated[type, Scalar]``: one value, or several if the type is a tuple. What is set, from
Python, JSON or an address, is converted when a change is made, or refused in one sentence.

JSON counts from 0, as programs do: ``{"do": "ablate", "kind": "cross", "layer": 1, "head": [5], …}``.
The compact text counts from 1, as people do. It has the name and the fields in their order, without the last
ones if they are as usual: ``ablate_cross_2_6_mean~choose_4_▁ist`` ablates head 6 of layer 2 and chooses the
token of step 4. ``~`` separates changes, ``_`` fields, ``-`` several values, ``.`` a pair; ``x`` is None;
other signs that could be taken for one of these are escaped, as ``%5F``.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache, partial
from types import NoneType
from typing import Any, ClassVar, Self, dataclass_transform, get_args, get_origin, get_type_hints

from transformer.config import AttentionKind
from transformer.text.kinds import Kind, one_of, whole
from transformer.text.kinds import number as within

MOST_CHANGES, MOST_VALUES, LONGEST = 64, 4096, 20_000
"""Most changes of a run, values of a field, and characters of a compact text."""
FEW = 4
"""Most values that a sentence lists."""
INDEX = whole(0, most=2**31 - 1)
DAMAGES = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


class InterventionError(ValueError):
    """A change that cannot be made; the message says why in one sentence, and counts from 1."""


def attempt(make: Callable[[Any], Any], value: Any, wrong: str) -> Any:
    """What is made of a value; InterventionError if that fails, with the value as ``{}``."""
    try:
        return make(value)
    except InterventionError:
        raise
    except DAMAGES as error:
        raise InterventionError(wrong.format(reprlib.repr(value))) from error


@dataclass(frozen=True, eq=False)
class Scalar:
    """What a value may be, and how it is written."""

    said: str  # what it must be, in words
    make: Callable[[Any], Any]  # what may be set → the value; one of ``DAMAGES`` if it means nothing
    write: Callable[[Any], str] = str
    read: Callable[[str], Any] = str  # what ``write`` wrote → what may be set
    words: Callable[[Any], str] = str  # in a sentence; of an index also None, for every one
    indices: Callable[[Any], list[tuple[str, int]]] = lambda value: []  # what is counted, a number from 0
    keys: bool = False  # whether several are a set, or a map if they are pairs


def text(said: str, pattern: str, words: Callable[[Any], str] = str) -> Scalar:
    """A text of a pattern."""
    kind = Kind(said, lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value, re.DOTALL)))
    return Scalar(said, partial(kind.check, ""), words=words)


def index(noun: str, counts: str = "") -> Scalar:
    """A whole number from 0 of what is counted."""
    return Scalar(
        INDEX.said,
        partial(INDEX.check, ""),
        lambda value: str(value + 1),
        lambda text: int(text) - 1,
        lambda value: f"every {noun}" if value is None else f"{noun} {value + 1}".lstrip(),
        lambda value: [(counts or noun, value)],
        keys=True,
    )


def number(low: float, high: float) -> Scalar:
    """A number within limits."""
    kind = within(low, high)
    return Scalar(kind.said, lambda value: float(kind.check("", value)), repr, float, "{:g}".format)


def choice(words: Mapping[Any, str]) -> Scalar:
    """One of several values, by what sentences call each; a text has what stands before its first ``_``."""
    options, short = list(words), {value.partition("_")[0]: value for value in words}
    make, write = (lambda value: options[options.index(value)]), (lambda value: value.partition("_")[0])
    return Scalar(one_of(*options).said, make, write, short.__getitem__, words.__getitem__)


def pair(one: Scalar, other: Scalar, arrow: str = "→") -> Scalar:
    """Two values."""

    def make(value: Any) -> tuple[Any, Any]:
        first, second = value
        return one.make(first), other.make(second)

    return Scalar(
        f"a pair of {one.said} and {other.said}",
        make,
        lambda value: f"{one.write(value[0])}.{other.write(value[1])}",
        lambda text: (one.read(text.partition(".")[0]), other.read(text.partition(".")[2])),
        lambda value: f"{one.words(value[0])} {arrow} {other.words(value[1])}",
        lambda value: one.indices(value[0]) + other.indices(value[1]),
        keys=True,
    )


def optional(scalar: Scalar) -> Scalar:
    """The same, or None."""
    return Scalar(
        scalar.said,
        lambda value: None if value is None else scalar.make(value),
        lambda value: "x" if value is None else scalar.write(value),
        lambda text: None if text == "x" else scalar.read(text),
        scalar.words,
        lambda value: [] if value is None else scalar.indices(value),
    )


def several(scalar: Scalar, least: int) -> Scalar:
    """Several values, or one alone; a map stands for its pairs, and numbers for a map from 0, 1, …"""

    def make(value: Any) -> tuple[Any, ...]:
        alone = isinstance(value, str) or not isinstance(value, Iterable)
        items = [value] if alone else value.items() if isinstance(value, Mapping) else value
        found = [scalar.make((i, item) if isinstance(item, float) else item) for i, item in enumerate(items)]
        found = sorted(set(found)) if scalar.keys else found
        twice = scalar.keys and isinstance(found[0], tuple) and len(dict(found)) < len(found)
        if twice or not least <= len(found) <= MOST_VALUES:
            raise ValueError("There are too many values, too few, or two for one key.")
        return tuple(found)

    def words(values: Any) -> str:
        said = [scalar.words(value) for value in values or [None]]
        return ", ".join(said[:FEW]) + f" … ({len(said)} in all)" * (len(said) > FEW)

    return Scalar(
        f"from {least} to {MOST_VALUES:,} values, each {scalar.said}",
        make,
        lambda values: join("-", map(scalar.write, values)),
        lambda text: [scalar.read(part) for part in split("-", text)] if text else [],
        words,
        lambda values: [found for value in values for found in scalar.indices(value)],
    )


def join(separator: str, parts: Iterable[str]) -> str:
    """Parts side by side; what would be taken for a separator is escaped."""
    signs = "[%~_]" if separator == "_" else f"[%{separator}]"
    return separator.join(re.sub(signs, lambda sign: f"%{ord(sign[0]):02X}", part) for part in parts)


def split(separator: str, text: str) -> list[str]:
    """The parts that were joined."""
    plain = "%([0-9A-F]{2})"
    return [re.sub(plain, lambda sign: chr(int(sign[1], 16)), part) for part in text.split(separator)]


def _fields_of(owner: Any) -> dict[str, Scalar]:
    hints, declared = get_type_hints(owner, include_extras=True), dict[str, Scalar]()
    for each in fields(owner):
        hint, scalar = get_args(hints[each.name])
        types = (hint,) if get_origin(hint) is tuple else (hint, *get_args(hint))
        if any(get_origin(each) is tuple for each in types):
            scalar = several(scalar, 0 if each.default == () else 1)
        declared[each.name] = optional(scalar) if NoneType in types else scalar
    return declared


fields_of: Callable[[Any], dict[str, Scalar]] = cache(_fields_of)
"""What the fields of a class of changes may be, by name, in order."""


@dataclass_transform(frozen_default=True)
class Intervention:
    """One change of a run: a value that can be printed, compared, kept as a key and written to a file.

    Every subclass is a frozen dataclass of declared fields. A kind of change has a name, and a sentence that
    people read, counted from 1: names of fields, and in brackets what is said only if the field there has a
    value, with what is said otherwise after ``|``.
    """

    known: ClassVar[dict[str, Any]] = {}
    """All kinds of changes by name."""
    name: ClassVar[str]
    _says: ClassVar[str]
    _part: ClassVar[str]

    def __init_subclass__(cls, name: str = "", says: str = "", part: str = "") -> None:
        dataclass(frozen=True)(cls)
        if name:
            cls.name, cls._says, cls._part, cls.known[name] = name, says, part, cls

    def __post_init__(self) -> None:
        for name, scalar, value in self.values():
            wrong = f"The {name.replace('_', ' ')} is {{}}; it must be {scalar.said}."
            object.__setattr__(self, name, attempt(scalar.make, value, wrong))

    def values(self) -> list[tuple[str, Scalar, Any]]:
        """Each field: its name, what it may be, what it is."""
        return [(name, scalar, getattr(self, name)) for name, scalar in fields_of(type(self)).items()]

    def __str__(self) -> str:
        def said(match: re.Match[str]) -> str:
            return match[1] if getattr(self, match[2]) not in (None, ()) else match[3] or ""

        declared = fields_of(type(self))
        sentence = re.sub(r"\[([^]|]*\{(\w+)\}[^]|]*)(?:\|([^]]*))?\]", said, self._says)
        return re.sub(r"\{(\w+)\}", lambda at: declared[at[1]].words(getattr(self, at[1])), sentence)

    def to_text(self) -> str:
        """Its compact text."""
        values = self.values()
        while values and values[-1][2] == getattr(type(self), values[-1][0], MISSING):  # its default
            del values[-1]
        return join("_", [self.name, *(scalar.write(value) for _, scalar, value in values)])

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Reads what ``to_text`` wrote; one of ``DAMAGES`` if it means nothing."""
        parts, declared = split("_", text)[1:], list(fields_of(cls).items())
        pairs = zip(declared[: len(parts)], parts, strict=True)
        return cls(**{name: scalar.read(part) for (name, scalar), part in pairs})

    @property
    def part(self) -> str:
        """What it changes: "tokens"; "mask", "scores", "weights" or "heads" of an attention; the "stream"."""
        return self._part

    @property
    def site(self) -> tuple[AttentionKind, int | None] | None:
        """The attention in which it acts, and its layer, None for all."""
        return (self.kind, getattr(self, "layer", None)) if hasattr(self, "kind") else None

    def heads(self, n_heads: int) -> tuple[int, ...]:
        """The heads in which it acts there."""
        return tuple(range(n_heads))

    def heads_of(self, kind: AttentionKind, layer: int, n_heads: int) -> tuple[int, ...]:
        """The heads of an attention sub-layer in which it acts."""
        acts = self.site is not None and self.site[0] == kind and self.site[1] in (None, layer)
        return self.heads(n_heads) if acts else ()


def _change(value: Any) -> Intervention:
    """A change as it is, or from its JSON or compact text."""
    if isinstance(value, Intervention):
        return value
    if isinstance(value, str):
        return Intervention.known[value.partition("_")[0]].from_text(value)
    return Intervention.known[value["do"]](**{name: part for name, part in value.items() if name != "do"})


CHANGE = Scalar("a change", _change, Intervention.to_text, words=lambda change: change.name)
"""A change, in a field of another."""


def write_text(changes: Iterable[Intervention]) -> str:
    """Interventions as compact text; empty without any."""
    return "~".join(change.to_text() for change in changes)


def read_text(text: str) -> tuple[Intervention, ...]:
    """Reads what ``write_text`` wrote; InterventionError if the text is too long, or holds something else."""
    if len(text) > LONGEST:
        raise InterventionError(f"The changes take more than {LONGEST:,} characters.")
    return as_interventions(text.split("~") if text else [])


def _json(value: Any) -> Any:
    if isinstance(value, Intervention):
        return {"do": value.name} | {name: _json(part) for name, _, part in value.values()}
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return str(value) if isinstance(value, str) else value


def to_json(changes: Iterable[Intervention]) -> list[dict[str, Any]]:
    """Interventions as JSON values."""
    return [_json(change) for change in changes]


def as_interventions(values: Iterable[Any]) -> tuple[Intervention, ...]:
    """Changes, their JSON or their texts as changes; InterventionError if one is no change, or too many."""
    values = (values,) if isinstance(values, Intervention) else values
    changes = attempt(tuple, values, "The changes {} cannot be read.")
    if len(changes) > MOST_CHANGES:
        raise InterventionError(f"A run takes at most {MOST_CHANGES} changes; there are {len(changes)}.")
    return tuple(attempt(_change, each, "The change {} cannot be read.") for each in changes)


from_json: Callable[[Any], tuple[Intervention, ...]] = as_interventions
"""Reads what ``to_json`` wrote, as ``as_interventions`` does."""
