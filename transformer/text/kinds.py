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
    words = f"a whole number from {low:,}"
    top = most
    if high is not None:
        words = f"{words} to {high:,}"
        top = high
    return _of(words, Integral, lambda x: low <= x <= top)


def number(low: float, high: float) -> Kind:
    """A number in a range, its ends included."""
    return _of(f"a number from {low:g} to {high:g}", Real, lambda x: low <= x <= high)


def at_least(low: float) -> Kind:
    """A finite number that is not below another."""
    return _of(f"at least {low}", Real, lambda x: low <= x < math.inf)


def above(low: float, high: float = math.inf) -> Kind:
    """A number above another, and at most a second one."""
    words = f"above {low:g}"
    if high < math.inf:
        words = f"{words} and at most {high:g}"
    return _of(words, Real, lambda x: low < x <= high)


def one_of(*choices: object) -> Kind:
    """One of a few values."""
    return Kind(listed(map(str, choices), "or"), choices.__contains__, choices)


def listed(parts: Iterable[str], joint: str = "and", most: int | None = None) -> str:
    """`a`, `a and b`, `a, b and c`; of more than ``most``, the first and the number of the
    others."""
    every = list(parts)
    if most is not None and len(every) > most:
        every[most:] = [f"{len(every) - most} more"]
    if len(every) < 2:
        return "".join(every)
    return f"{', '.join(every[:-1])} {joint} {every[-1]}"


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
            kinds += [beside for beside in more if isinstance(beside, Kind)]
            notes = [*(beside for beside in more if isinstance(beside, str)), *notes]
            reader = next(filter(isfunction, more), reader)
        optional = optional or NoneType in more
        many = many or more == [...]
        hint = first
    if get_origin(hint) is Literal:
        kinds.append(one_of(*get_args(hint)))
    elif hint in _TYPES:
        kinds.append(_TYPES[hint])
    return Declared(
        type=hint,
        kinds=tuple(kinds),
        notes=tuple(notes),
        optional=optional,
        many=many,
        reader=reader,
    )


@functools.cache
def _declared_fields(owner: Any) -> dict[str, Declared]:
    """What each field of a dataclass says of its value."""
    hints = get_type_hints(owner, include_extras=True)
    return {field.name: declared(hints[field.name]) for field in fields(owner)}


class Checked:
    """Base of a dataclass; ValueError if a field holds a value of another kind than it declares."""

    def __post_init__(self) -> None:
        owner: Any = type(self)
        for name, declaration in _declared_fields(owner).items():
            value = _plain(getattr(self, name))
            object.__setattr__(self, name, value)
            if declaration.many:
                members = _TYPES[tuple].check(name, value)
            elif value is None and declaration.optional:
                members = ()
            else:
                members = (value,)
            for member in members:
                for kind in declaration.kinds:
                    kind.check(name, member)


def _plain(value: Any) -> Any:
    """A value, or the number that NumPy's number is, which JSON does not know."""
    if isinstance(value, int | float) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)
