"""Options of commands that follow from the types of their values (``transformer.text.kinds``)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from inspect import Parameter
from typing import Any, Literal, get_args, get_origin

from transformer.text.kinds import Declared, Kind, declared

_METAVARS = {int: "N", float: "X", str: "NAME"}


def flag(name: str) -> str:
    """A parameter or a field as the command line writes it."""
    return "--" + name.replace("_", "-")


def add_option(
    parser: argparse.ArgumentParser,
    name: str,  # of the parameter or field
    hint: Any,  # its type; the last text beside it is the help, and one before it the placeholder
    default: Any = Parameter.empty,  # without one, the option must be given
    counts: Kind | None = None,  # what whole numbers are that say no more
) -> None:
    """Declares the option of a parameter of a function, or of a field of a dataclass."""
    found = declared(hint)
    *placeholder, said = found.notes
    if default not in (Parameter.empty, None, False, ()):
        said += f" (default: {' '.join(map(str, default)) if found.many else default})"
    more: dict[str, Any] = {"default": default, "help": said}
    if found.type is bool:
        parser.add_argument(flag(name), action="store_true", **more)
        return
    if found.many:
        more["nargs"] = "*" if default == () else "+"
    if get_origin(found.type) is Literal:
        more["choices"] = get_args(found.type)
    else:
        more["metavar"] = placeholder[0] if placeholder else _METAVARS[found.type]
        more["type"] = _reader(found, counts)
    parser.add_argument(flag(name), required=default is Parameter.empty, **more)


def _reader(found: Declared, counts: Kind | None) -> Callable[[str], Any]:
    kinds = found.kinds or ((counts,) if counts and found.type is int else ())

    def read(text: str) -> Any:
        try:
            value = found.type(text)
        except ValueError:
            value = None
        wrong = [kind.said for kind in kinds if not kind.holds(value)]
        if value is None or wrong:
            said = wrong[0] if wrong else {int: "a whole number", float: "a number"}[found.type]
            raise argparse.ArgumentTypeError(f"it must be {said}, not {text!r:.40}")
        return value

    return read
