"""JSON as typed values: dataclasses of numbers, texts, tuples and mappings, and whether a file
holds them."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from transformer.storage.files import CheckpointError, read_json

T = TypeVar("T")
_hints = functools.cache(get_type_hints)


def read_typed(path: Path, read: Callable[[dict[str, Any]], T]) -> T:
    """Content of a JSON file, as ``read`` understands it; CheckpointError if missing or damaged."""
    values = read_json(path)
    try:
        return read(values)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged; remove it, or write it again.") from error


def typed(kind: type[T], value: Any, place: str = "the file") -> T:
    """A value of JSON as a type; what a dataclass has no field for is left out.

    ValueError if the value is of another type, a field is missing, or a number is not finite.
    """
    origin: Any = get_origin(kind) or kind
    inner = get_args(kind)
    result = value
    if origin in (Union, UnionType):
        result = _one_of([None if kind is NoneType else kind for kind in inner], value, place)
    elif origin is Literal:
        if value not in inner:
            raise ValueError(f"{value!r:.40} in {place} is none of {', '.join(map(repr, inner))}.")
    elif is_dataclass(origin):
        make: Any = origin
        hints = _hints(make)
        values = _checked(value, dict, place)
        known = dict[str, Any]()
        for field in fields(make):
            if field.name in values:
                known[field.name] = typed(
                    hints[field.name], values[field.name], f"{field.name} of {place}"
                )
            elif field.default is MISSING and field.default_factory is MISSING:
                raise ValueError(f"There is no {field.name} in {place}.")
        try:
            result = make(**known)
        except ValueError as error:
            raise ValueError(f"In {place}: {error}") from error
    elif origin in (dict, Mapping):
        mapping = _checked(value, dict, place)
        result = {
            name: typed(inner[1], each, f"{name} of {place}") for name, each in mapping.items()
        }
    elif origin in (tuple, Sequence):
        items = _checked(value, list, place)
        kinds = inner[:1] * len(items) if len(inner) == 1 or inner[1] is ... else inner
        pairs = enumerate(zip(kinds, items, strict=True), start=1)
        result = tuple(typed(*each, f"number {number} of {place}") for number, each in pairs)
    elif origin is float and type(value) is int:
        pass  # a file keeps whole numbers whole
    elif type(value) is not origin or (origin is float and not math.isfinite(value)):
        raise ValueError(f"{value!r:.40} in {place} is no {origin.__name__}.")
    return result


def _one_of(kinds: Sequence[Any], value: Any, place: str) -> Any:
    """A value as the first of some types that it is of; None stands for no value."""
    if value is None and None in kinds:
        return None
    wrong = list[ValueError]()
    for kind in filter(None, kinds):
        try:
            return typed(kind, value, place)
        except ValueError as error:
            wrong.append(error)
    raise wrong[-1]


def _checked(value: Any, kind: type[T], place: str) -> T:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r:.40} in {place} is no {kind.__name__}.")
    return value
