"""Writes the declarations of feeds for the scripts: `python -m explorer.linked.living.declare`."""

import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType

from explorer.linked.served import scripts
from explorer.linked.view import wire

_NAMES: Mapping[object, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}
_UNIONS = (typing.Union, UnionType)
_HEAD = """// What Python sends the linked view. Written by `python -m explorer.linked.living.declare` from
// explorer/linked/view/wire.py: change that file, not this one.
"""


def declarations() -> str:
    """An interface for each `TypedDict` that a feed holds, and the union of all feeds."""
    feeds = typing.get_args(wire.Feed)
    union = "".join(f"\n  | {feed.__name__}" for feed in feeds)
    written = interfaces([*feeds, wire.ProofFeed]).values()
    return "\n".join([_HEAD, *written, f"export type Feed ={union};\n"])


def interfaces(kinds: Iterable[type]) -> dict[str, str]:
    """The interfaces of dictionaries by name, each after those that it needs.

    TypeError if a field has a type that has no form in TypeScript yet.
    """
    written: dict[str, str] = {}
    for kind in kinds:
        _declare(kind, written)
    return written


def _declare(kind: type, written: dict[str, str]) -> None:
    """Adds the interface of a dictionary, after those that it needs."""
    lines = []
    for field, hint in typing.get_type_hints(kind, include_extras=True).items():
        name = field
        if typing.get_origin(hint) is typing.NotRequired:
            (hint,) = typing.get_args(hint)
            name = f"{field}?"
        lines.append(f"  {name}: {_type(hint, written)};\n")
    written[kind.__name__] = f"export interface {kind.__name__} {{\n{''.join(lines)}}}\n"


def _type(hint: object, written: dict[str, str]) -> str:
    """A type as TypeScript writes it."""
    if hint in _NAMES:
        return _NAMES[hint]
    if isinstance(hint, type) and typing.is_typeddict(hint):
        if hint.__name__ not in written:
            _declare(hint, written)
        return hint.__name__
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is typing.Literal:
        return " | ".join(f'"{value}"' for value in arguments)
    types = [_type(argument, written) for argument in arguments]
    if origin in _UNIONS:
        return " | ".join(types)
    if origin is tuple:
        return f"[{', '.join(types)}]"
    if origin in (list, Sequence):
        several = typing.get_origin(arguments[0]) in _UNIONS
        return f"({types[0]})[]" if several else f"{types[0]}[]"
    if origin is Mapping:
        return f"Record<{', '.join(types)}>"
    raise TypeError(f"{hint} has no form in TypeScript yet; add it to {__name__}.")


def file() -> Path:
    """The file beside the scripts of the linked view."""
    return scripts() / "linked_view" / "feeds.d.ts"


if __name__ == "__main__":
    file().write_text(declarations(), encoding="utf-8")
