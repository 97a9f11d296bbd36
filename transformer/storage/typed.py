"""JSON as typed values: dataclasses of numbers, texts, tuples and mappings, and whether a file
holds them.

What a value may be beside its type stands there as in the options of a command
(``transformer.text.kinds``): ``Annotated[int, whole(0)]``. A ``Checked`` dataclass checks its own.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from transformer.storage.files import CheckpointError, read_json
from transformer.text.kinds import Checked, Kind

T = TypeVar("T")


class KindError(ValueError):
    """A value of JSON is of another kind than belongs there."""

    def __init__(self, value: object, kind: Kind, place: str) -> None:
        self.kind = kind
        super().__init__(f"{value!r:.40} in {place} is not {kind.said}.")


def read_typed(path: Path, read: Callable[[dict[str, Any]], T]) -> T:
    """Content of a JSON file, as ``read`` understands it; CheckpointError if missing or damaged."""
    values = read_json(path)
    try:
        return read(values)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged; remove it, or write it again.") from error


def typed(kind: type[T], value: object, place: str = "the file") -> T:
    """A value of JSON as a type; what a dataclass has no field for is left out.

    ValueError if the value is of another type, a field is missing, or a number is not finite;
    KindError if it is of another kind.
    """
    origin: Any = get_origin(kind) or kind
    result: Any
    if origin is Annotated:
        result = _annotated(get_args(kind), value, place)
    elif origin is object:  # whoever asks reads it
        result = value
    elif origin in (Union, UnionType):
        result = _one_of(get_args(kind), value, place)
    elif origin is Literal:
        result = _choice(get_args(kind), value, place)
    elif is_dataclass(origin):
        result = _dataclass(origin, value, place)
    elif origin in (dict, Mapping):
        result = _mapping(get_args(kind)[1], value, place)
    elif origin in (tuple, Sequence):
        result = _tuple(get_args(kind), value, place)
    else:
        result = _plain(origin, value, place)
    return result


def _annotated(annotated: Sequence[Any], value: object, place: str) -> object:
    """A value as a type, if it is of the kinds that stand beside it."""
    kind, *notes = annotated
    for note in notes:
        if isinstance(note, Kind) and not note.holds(value):
            raise KindError(value, note, place)
    return typed(kind, value, place)


@functools.cache
def _hints(owner: Any) -> dict[str, Any]:
    """The types of a dataclass's fields, with the kinds that it does not check itself."""
    return get_type_hints(owner, include_extras=not issubclass(owner, Checked))


def _one_of(kinds: Sequence[Any], value: object, place: str) -> object:
    """A value as the first of some types that it is of."""
    if value is None and NoneType in kinds:
        return None
    faults = list[ValueError]()
    for kind in kinds:
        if kind is not NoneType:
            try:
                return typed(kind, value, place)
            except ValueError as error:
                faults.append(error)
    raise faults[-1]


def _choice(choices: Sequence[object], value: object, place: str) -> object:
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{value!r:.40} in {place} is none of {listed}.")
    return value


def _dataclass(kind: Any, value: object, place: str) -> object:
    values = _checked(value, dict, place)
    hints = _hints(kind)
    known = dict[str, object]()
    for field in fields(kind):
        name = field.name
        if name in values:
            known[name] = typed(hints[name], values[name], f"{name} of {place}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"There is no {name} in {place}.")
    try:
        return kind(**known)
    except ValueError as error:
        raise ValueError(f"In {place}: {error}") from error


def _mapping(kind: type[T], value: object, place: str) -> dict[str, T]:
    values = _checked(value, dict, place)
    return {name: typed(kind, entry, f"{name} of {place}") for name, entry in values.items()}


def _tuple(kinds: Sequence[Any], value: object, place: str) -> tuple[object, ...]:
    """A list as a tuple: of one type, ``tuple[int, ...]`` or ``Sequence[int]``, or of several."""
    entries = _checked(value, list, place)
    alike = len(kinds) == 1 or kinds[1] is ...
    if alike:
        kinds = [kinds[0]] * len(entries)
    pairs = enumerate(zip(kinds, entries, strict=True), start=1)
    return tuple(
        typed(kind, entry, f"number {number} of {place}") for number, (kind, entry) in pairs
    )


def _plain(kind: type, value: object, place: str) -> object:
    """A number, a text, true or false; a file keeps whole numbers whole."""
    if kind is float and type(value) is int:
        return value
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{value!r:.40} in {place} is no {kind.__name__}.")
    return value


def _checked(value: object, kind: type[T], place: str) -> T:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r:.40} in {place} is no {kind.__name__}.")
    return value
