"""Interventions as values with declared fields, and as text: JSON for files, a compact text for an address.

JSON counts from 0, as programs do: ``{"do": "ablate", "kind": "cross", "layer": 1, "head": [5], …}``.
The compact text counts from 1, as people do: ``ablate_cross_2.6_mean~choose_4_▁ist`` ablates head 6 of layer
2 and chooses the token of step 4. ``~`` separates changes and ``_`` separates fields; inside a field, both
and ``%`` are written as ``%7E``, ``%5F`` and ``%25``. Apart from pieces and texts, a field uses only
characters that an address holds unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar, dataclass_transform

from transformer.interventions.base import InterventionError, Setting

Json = dict[str, Any]
Held = TypeVar("Held")
Given = TypeVar("Given")
MOST_CHANGES = 64
LONGEST = 20_000
"""Most characters of a compact text."""
UNREADABLE = "The change {!r:.60} cannot be read."
DAMAGES = (ValueError, TypeError, IndexError, KeyError, AttributeError)


class Field(Generic[Held, Given]):
    """A declared field: ``Held`` is the type of its value, ``Given`` the type of what may be set.

    Each type of field says how its value is checked, written and read. A field is a descriptor, so a value
    that means nothing never exists.
    """

    optional = False
    """True if the value may be None."""

    def __init__(
        self,
        default: Any = ...,  # without one, the field must be given; None makes it optional
        none: str | None = None,  # None in the compact text; None is left out there without it
    ) -> None:
        self.default, self.none = default, none
        self.optional = self.optional or default is None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, holder: object | None, owner: type) -> Held:
        if holder is None and self.default is ...:
            raise AttributeError(self.name)
        value: Held = self.default if holder is None else holder.__dict__[self.name]
        return value

    def __set__(self, holder: object, value: Given) -> None:
        holder.__dict__[self.name] = None if value is None and self.optional else self.validate(value)

    def validate(self, value: Any) -> Any:
        """The value that is held for what was given; InterventionError if it is of another sort."""
        return value

    def check(self, value: Any, of: Any, setting: Setting) -> None:
        """Raises InterventionError if the request has no such place; ``of`` has the other fields."""

    def to_text(self, value: Any, parts: list[str]) -> None:
        """Adds the value to the fields of a compact text."""
        if value is not None:
            parts.append(self.write(value))
        elif self.none is not None:
            parts.append(self.none)

    def from_text(self, parts: list[str]) -> Any:
        """Takes the value from the fields of a compact text that are left."""
        if self.optional and parts[:1] == ([] if self.none is None else [self.none]):
            del parts[:1]
            return None
        return self.read(parts.pop(0))

    def write(self, value: Any) -> str:
        """The value as one field of a compact text."""
        return str(value)

    def read(self, text: str) -> Any:
        """Reads what ``write`` wrote."""
        return text

    def to_json(self, value: Any) -> Any:
        """The value as JSON."""
        if isinstance(value, tuple):
            return [self.to_json(each) for each in value]
        return str(value) if isinstance(value, str) else value

    def from_json(self, value: Any) -> Any:
        """Reads what ``to_json`` wrote."""
        return value


@dataclass_transform(eq_default=True)
class Written:
    """A value with declared fields; every class below is a frozen dataclass of them."""

    declared: ClassVar[dict[str, Field[Any, Any]]] = {}
    order: ClassVar[tuple[str, ...]] = ()
    """Fields in the order of the compact text, if it is another."""

    def __init_subclass__(cls) -> None:
        cls.declared = cls.declared | {n: each for n, each in vars(cls).items() if isinstance(each, Field)}
        dataclass(frozen=True)(cls)

    def check(self, setting: Setting) -> None:
        """Raises InterventionError if the model or the request has no such place."""
        for name, each in self.declared.items():
            if (value := getattr(self, name)) is not None:
                each.check(value, self, setting)

    def to_text(self, parts: list[str]) -> None:
        """Adds all fields to those of a compact text."""
        for name in self.order or self.declared:
            self.declared[name].to_text(getattr(self, name), parts)

    @classmethod
    def from_text(cls, parts: list[str]) -> Self:
        """Takes all fields from those of a compact text."""
        make: Callable[..., Self] = cls
        return make(**{name: cls.declared[name].from_text(parts) for name in cls.order or cls.declared})

    def to_json(self) -> Json:
        """All fields as JSON."""
        return {name: each.to_json(getattr(self, name)) for name, each in self.declared.items()}

    @classmethod
    def from_json(cls, values: Json) -> Self:
        """Reads what ``to_json`` wrote."""
        make: Callable[..., Self] = cls
        return make(**{name: cls.declared[name].from_json(value) for name, value in values.items()})


class Intervention(Written):
    """One change of a run: a value that can be printed, compared, kept as a key and written to a file."""

    name: ClassVar[str]
    """Its name in JSON and in the compact text."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            SORTS[cls.name] = cls

    @property
    def needs_stream(self) -> bool:
        """True if only the residual stream shows what it did."""
        return False

    def __str__(self) -> str:
        """The sentence that people read: in captions, in the badge; counts from 1."""
        raise NotImplementedError


SORTS: dict[str, type[Intervention]] = {}
"""Every sort of intervention, by name; a sort is added when its class is made."""


def write_text(changes: Iterable[Intervention]) -> str:
    """Interventions as compact text; empty without any."""
    return "~".join(map(_text, changes))


def _text(change: Intervention) -> str:
    parts = [change.name]
    change.to_text(parts)
    return "_".join(re.sub("[%~_]", lambda found: f"%{ord(found[0]):02X}", part) for part in parts)


def read_text(text: str) -> tuple[Intervention, ...]:
    """Reads what ``write_text`` wrote; InterventionError if the text is too long, or holds something else."""
    if len(text) > LONGEST:
        raise InterventionError(f"The changes take more than {LONGEST:,} characters.")
    return few([_read(each) for each in text.split("~")] if text else [])


def _read(text: str) -> Intervention:
    name, *parts = (re.sub("%(25|7E|5F)", lambda at: chr(int(at[1], 16)), part) for part in text.split("_"))
    sort = _sort(name, f"{name!r:.40}")
    try:
        found = sort.from_text(parts)
        if not parts:
            return found
    except InterventionError:
        raise
    except DAMAGES as error:
        raise InterventionError(UNREADABLE.format(text)) from error
    raise InterventionError(UNREADABLE.format(text))


def to_json(changes: Iterable[Intervention]) -> list[Json]:
    """Interventions as JSON values."""
    return [{"do": each.name, **each.to_json()} for each in changes]


def from_json(values: Any) -> tuple[Intervention, ...]:
    """Reads what ``to_json`` wrote; InterventionError if the values are something else."""
    if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
        raise InterventionError("Changes are a list of objects.")
    return few([_from_json(each) for each in values])


def _from_json(values: Json) -> Intervention:
    sort = _sort(str(values.get("do")), f"{values.get('do')!s:.40}")
    try:
        return sort.from_json({name: value for name, value in values.items() if name != "do"})
    except InterventionError:
        raise
    except DAMAGES as error:
        raise InterventionError(UNREADABLE.format(str(values))) from error


def _sort(name: str, shown: str) -> type[Intervention]:
    if name not in SORTS:
        raise InterventionError(f"There is no change {shown}; known are {', '.join(SORTS)}.")
    return SORTS[name]


def few(changes: Sequence[Intervention]) -> tuple[Intervention, ...]:
    """Changes as a tuple; InterventionError if there are too many."""
    if len(changes) > MOST_CHANGES:
        raise InterventionError(f"A run takes at most {MOST_CHANGES} changes; there are {len(changes)}.")
    return tuple(changes)
