"""A program of several commands, each a function: its signature makes the options. No PyTorch.

The first line of the docstring is the help. A parameter that may be given by place is an argument, one after
``*`` the option of its name. A dataclass as a type stands for the options that are its fields, and a ``dict``
beside a table of types for those options of the table that were given. What stands beside a type are the
kinds of its values (``transformer.text.kinds``), a function that reads a word, a placeholder, the help.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import partial
from inspect import Parameter, signature
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

from transformer.text.kinds import Declared, declared

Command = Callable[..., int]
Commands = Mapping[str, "Command | Commands"]
"""Functions by name, or more commands that follow a name."""
_METAVARS = {int: "N", float: "X", str: "NAME", Path: "FILE"}
_NAMES = {int: "a whole number", float: "a number"}


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one sentence, without the list of options."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; --help lists the options.\n")


def run_program(
    name: str,
    about: str | None,
    # imports the commands: that takes seconds, in which Ctrl-C may come
    commands: Callable[[], Commands],
    argv: Sequence[str] | None = None,  # the words after the program's name; None for those of the process
) -> int:
    """Runs one command; the exit status: 0, 1 if some lines were left out, 2 for bad input, 130 after Ctrl-C.

    Errors are one sentence on standard error. What is written is UTF-8, whatever the locale.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        parser = Parser(prog=name, description=about)
        _add_commands(parser, commands())
        values = vars(parser.parse_args(argv))
        return int(_call(values["run"], values))
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(_sentence(error), file=sys.stderr)
        return 2
    except RuntimeError as error:
        from transformer.devices import is_full  # here, since it loads PyTorch

        if not is_full(error):
            raise
        print("The GPU has no memory left: ask for less at once, or use --device cpu.", file=sys.stderr)
        return 2


def output_file(path: str) -> Path:
    """The path of a file to write; ValueError, before any work begins, if its folder is missing."""
    if not (folder := Path(path).absolute().parent).is_dir():
        raise ValueError(f"There is no folder {folder} to write {Path(path).name} into; make it first.")
    return Path(path)


OutputFile = Annotated[Path, output_file]


def _sentence(error: Exception) -> str:
    """The message of an error; the operating system's errors without their number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.strerror}." if error.filename is None else f"{error.filename}: {error.strerror}."


def _add_commands(parser: argparse.ArgumentParser, commands: Commands) -> None:
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command in commands.items():
        if isinstance(command, Mapping):
            _add_commands(subparsers.add_parser(name, help=", ".join(command)), command)
            continue
        line = (command.__doc__ or " ").partition("\n")[0].removesuffix(".")
        line = line[0].lower() + line[1:]
        own = subparsers.add_parser(name, help=line.replace("%", "%%"), description=line)
        own.set_defaults(run=command)
        _add_parameters(own, command)


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[Parameter, Any, Mapping[str, Any] | None]]:
    """The parameters of a function, or the fields of a dataclass; their types; their tables, if they have."""
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in signature(function).parameters.items():
        tables = (each for each in get_args(hints[name]) if isinstance(each, Mapping))
        yield parameter, hints[name], next(tables, None)


def _add_parameters(parser: argparse.ArgumentParser, function: Callable[..., Any]) -> None:
    for parameter, hint, table in _parameters(function):
        if isinstance(hint, type) and is_dataclass(hint):
            _add_parameters(parser, hint)
        elif table is not None:
            for name, each in table.items():
                _add_option(parser, name, each, None)
        elif parameter.kind is Parameter.KEYWORD_ONLY:
            _add_option(parser, parameter.name, hint, parameter.default)
        else:
            value, required = declared(hint), parameter.default is Parameter.empty
            more = _described(value, parameter.name, parameter.default)
            if value.many or not required:
                more["nargs"] = ("+" if required else "*") if value.many else "?"
            parser.add_argument(parameter.name, **more)


def _add_option(parser: argparse.ArgumentParser, name: str, hint: Any, default: Any) -> None:
    value, flag = declared(hint), "--" + name.replace("_", "-")
    if get_origin(value.type) is list:  # an option that may be given several times
        item = declared(*get_args(value.type))
        more = _described(replace(item, notes=value.notes), name, default) | {"action": "append"}
    else:
        more = _described(value, name, default) | ({"nargs": "+"} if value.many else {})
    if value.type is bool:
        more = {"action": "store_true", "default": default, "help": more["help"]}
    elif default is Parameter.empty:
        more["required"] = True
    parser.add_argument(flag, **more)


def _described(value: Declared, name: str, default: Any) -> dict[str, Any]:
    """What argparse knows of a value: its help, its default, how it is read."""
    *placeholder, text = value.notes
    if default not in (Parameter.empty, None, False, (), ""):
        text += f" (default: {default})"
    more: dict[str, Any] = {"help": text.replace("%", "%%")}
    if default is not Parameter.empty:
        more["default"] = default
    if choices := [each for kind in value.kinds for each in kind.choices]:
        return more | {"choices": choices}
    metavar = placeholder[0] if placeholder else _METAVARS.get(value.type, name.upper())
    return more | {"metavar": metavar, "type": partial(_read, value)}


def _read(value: Declared, word: str) -> Any:
    """A word of the command line as a value; an error that says what it must be."""
    try:
        result = (value.reader or value.type)(word)
    except ValueError as error:
        if value.reader is not None:
            raise argparse.ArgumentTypeError(str(error).removesuffix(".")) from error
        result = None
    wrong = [kind.said for kind in value.kinds if not kind.holds(result)]
    wrong += [_NAMES[value.type]] if result is None else []
    if wrong:
        raise argparse.ArgumentTypeError(f"it must be {wrong[0]}, not {word!r:.40}")
    return result


def _call(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Calls a function, or makes a dataclass, with the values of its options."""
    arguments = dict[str, Any]()
    for parameter, hint, table in _parameters(function):
        if isinstance(hint, type) and is_dataclass(hint):
            arguments[parameter.name] = _call(hint, values)
        elif table is not None:
            arguments[parameter.name] = {name: values[name] for name in table if values[name] is not None}
        else:
            value = values[parameter.name]
            arguments[parameter.name] = tuple(value) if declared(hint).many else value
    return function(**arguments)
