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
from dataclasses import is_dataclass
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
        line = (command.__doc__ or " ").partition("\n")[0].removesuffix(".").replace("%", "%%")
        line = line[0].lower() + line[1:]
        own = subparsers.add_parser(name, help=line, description=line)
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
        if is_dataclass(hint):
            _add_parameters(parser, hint)
            continue
        for name, each in ({parameter.name: hint} if table is None else table).items():
            by_place = parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
            _add(parser, name, each, parameter.default if table is None else None, by_place)


def _add(parser: argparse.ArgumentParser, name: str, hint: Any, default: Any, by_place: bool) -> None:
    """Declares the argument or the option of one value; without a default, it must be given."""
    found, required, more = declared(hint), default is Parameter.empty, dict[str, Any]()
    flag = "--" + name.replace("_", "-")
    *placeholder, text = found.notes
    if default not in (Parameter.empty, None, False, (), ""):
        text += f" (default: {default})"
    more["help"] = text.replace("%", "%%")
    if not required:
        more["default"] = default
    if found.type is bool:
        parser.add_argument(flag, action="store_true", **more)
        return
    if get_origin(found.type) is list:  # an option that may be given several times
        more["action"], found = "append", declared(*get_args(found.type))
    choices = [each for kind in found.kinds for each in kind.choices]
    metavar = placeholder[0] if placeholder else _METAVARS.get(found.type, name.upper())
    more |= {"choices": choices} if choices else {"metavar": metavar, "type": _reader(found)}
    if found.many:
        more["nargs"] = "*" if by_place and not required else "+"
    elif by_place and not required:
        more["nargs"] = "?"
    parser.add_argument(name if by_place else flag, **more, **({} if by_place else {"required": required}))


def _reader(found: Declared) -> Callable[[str], Any]:
    """Reads a word of the command line as a value of a type, or says what it must be."""

    def read(word: str) -> Any:
        if found.reader is not None:
            try:
                return found.reader(word)
            except ValueError as error:
                raise argparse.ArgumentTypeError(str(error).removesuffix(".")) from error
        try:
            value = found.type(word)
        except ValueError:
            value = None
        wrong = [kind.said for kind in found.kinds if not kind.holds(value)]
        wrong += [_NAMES[found.type]] if value is None else []
        if wrong:
            raise argparse.ArgumentTypeError(f"it must be {wrong[0]}, not {word!r:.40}")
        return value

    return read


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
