"""Kinds of values: what a value may be, said once; checks, their messages and options of commands
follow.

A kind stands beside a type: ``steps: Annotated[int, whole(1), "total number of steps"]``. Some
types say enough themselves: ``bool``, ``str``, a ``Literal`` with its choices, and ``None`` for
what may be left out.
"""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from inspect import isfunction
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Value = TypeVar("Value")


@dataclass(frozen=True)
class Kind:
    """What a value may be."""

    said: str  # in words, after "it must be"
    holds: Callable[[Any], bool]
    choices: tuple[object, ...] = ()  # all values, if they are few

    def check(self, name: str, value: Value, error: type[ValueError] = ValueError) -> Value:
        """The value; an error that names it if it is of another kind."""
        if not self.holds(value):
            raise error(f"{name} is {value!r:.80}; it must be {self.said}.")
        return value


def _of(said: str, kind: type, holds: Callable[[Any], bool] = lambda _: True) -> Kind:
    """A value of a type for which something holds; true and false are no numbers."""
    return Kind(
        said, lambda x: isinstance(x, kind) and isinstance(x, bool) <= (kind is bool) and holds(x)
    )


def whole(low: int, high: int | None = None, most: float = math.inf) -> Kind:
    """A whole number from ``low`` to ``high``; a bound that goes without saying is ``most``."""
    said = f"a whole number from {low:,}" + ("" if high is None else f" to {high:,}")
    top = most if high is None else high
    return _of(said, Integral, lambda x: low <= x <= top)


def number(low: float, high: float) -> Kind:
    """A number in a range, its ends included."""
    return _of(f"a number from {low:g} to {high:g}", Real, lambda x: low <= x <= high)


def at_least(low: float) -> Kind:
    """A finite number that is not below another."""
    return _of(f"at least {low}", Real, lambda x: low <= x < math.inf)


def above(low: float, high: float = math.inf) -> Kind:
    """A number above another, and at most a second one."""
    said = f"above {low:g}" + (f" and at most {high:g}" if high < math.inf else "")
    return _of(said, Real, lambda x: low < x <= high)


def one_of(*choices: object) -> Kind:
    """One of a few values."""
    return Kind(listed(map(str, choices), "or"), choices.__contains__, choices)


def listed(parts: Iterable[str], joint: str = "and", most: int | None = None) -> str:
    """`a`, `a and b`, `a, b and c`; of more than ``most``, the first and the number of the
    others."""
    every = list(parts)
    if most is not None and len(every) > most:
        every[most:] = [f"{len(every) - most} more"]
    return ", ".join(every[:-1]) + f" {joint} " * (len(every) > 1) + "".join(every[-1:])


PART = _of("a number from 0 to below 1", Real, lambda x: 0 <= x < 1)
"""A share that is never all."""
_TYPES = {bool: _of("true or false", bool), str: _of("a text", str), tuple: _of("a list", tuple)}


@dataclass(frozen=True)
class Declared:
    """What a hint says of a value."""

    type: Any  # without what follows
    kinds: tuple[Kind, ...] = ()
    notes: tuple[str, ...] = ()  # the other things that stand beside the type
    optional: bool = False  # whether it may be None
    many: bool = False  # whether it is a tuple of such values
    # makes the value from a word of the command line, or raises ValueError; None for the type
    # itself
    reader: Callable[[str], Any] | None = None


def declared(hint: Any) -> Declared:
    """Reads a hint, such as ``Annotated[int | None, whole(1, 9)]`` or ``tuple[Path, ...]``."""
    kinds = list[Kind]()
    notes = list[str]()
    optional = False
    many = False
    reader = None
    while (origin := get_origin(hint)) in (Annotated, Union, UnionType, tuple):
        first, *more = get_args(hint)
        if origin is Annotated:
            kinds += [each for each in more if isinstance(each, Kind)]
            notes = [*(each for each in more if isinstance(each, str)), *notes]
            reader = next(filter(isfunction, more), reader)
        optional = optional or NoneType in more
        many = many or more == [...]
        hint = first
    if get_origin(hint) is Literal:
        kinds.append(one_of(*get_args(hint)))
    elif hint in _TYPES:
        kinds.append(_TYPES[hint])
    return Declared(hint, tuple(kinds), tuple(notes), optional, many, reader)


@functools.cache
def _declared_fields(owner: Any) -> dict[str, Declared]:
    """What each field of a dataclass says of its value."""
    hints = get_type_hints(owner, include_extras=True)
    return {field.name: declared(hints[field.name]) for field in fields(owner)}


class Checked:
    """Base of a dataclass; ValueError if a field holds a value of another kind than it declares."""

    def __post_init__(self) -> None:
        owner: Any = type(self)
        for name, each in _declared_fields(owner).items():
            value = getattr(self, name)
            if not isinstance(value, int | float) and isinstance(
                value, Real
            ):  # NumPy's, which JSON does not know
                value = int(value) if isinstance(value, Integral) else float(value)
            object.__setattr__(self, name, value)
            if each.many:
                _TYPES[tuple].check(name, value)
            for part in value if each.many else () if value is None and each.optional else (value,):
                for kind in each.kinds:
                    kind.check(name, part)
