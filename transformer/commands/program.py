"""A program of several commands, each a function: its signature and docstring make the options. No
PyTorch.

The first line of the docstring is the help. A parameter that may be given by place is an argument,
one after ``*`` the option of its name. A dataclass as a type stands for the options that are its
fields, and a ``dict`` beside a table of types for those options of the table that were given. What
stands beside a type are the kinds of its values (``transformer.text.kinds``), a function that reads
a word, a placeholder, the help; those that do not fit there are a line ``name [PLACEHOLDER]: help``
of the docstring.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import partial
from inspect import Parameter, cleandoc, signature
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

from transformer.text.kinds import Declared, declared

Command = Callable[..., int]
Commands = Mapping[str, "Command | Commands"]
"""Functions by name, or more commands that follow a name."""
Maker = Callable[[Mapping[str, Any]], Any]
"""Makes a value from those that were read."""
_TEXT = re.compile(r"^(\w+)(?: \[(.+?)\])?: (.+(?:\n +.+)*)", re.MULTILINE)
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
    argv: Sequence[str]
    | None = None,  # the words after the program's name; None for those of the process
) -> int:
    """Runs one command; the exit status: 0, 1 if some lines were left out, 2 for bad input, 130
    after Ctrl-C.

    Errors are one sentence on standard error. What is written is UTF-8, whatever the locale.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        parser = Parser(prog=name, description=about)
        _add_commands(parser, commands())
        values = vars(parser.parse_args(argv))
        return int(values["run"](values))
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        sentence = str(error)
        if isinstance(error, OSError) and error.strerror is not None:  # without its number
            file = "" if error.filename is None else f"{error.filename}: "
            sentence = f"{file}{error.strerror}."
        print(sentence, file=sys.stderr)
        return 2
    except RuntimeError as error:
        from transformer.devices import is_full  # here, since it loads PyTorch

        if not is_full(error):
            raise
        print(
            "The GPU has no memory left: ask for less at once, or use --device cpu.",
            file=sys.stderr,
        )
        return 2


def output_file(path: str) -> Path:
    """The path of a file to write; ValueError, before any work begins, if its folder is missing."""
    if not (folder := Path(path).absolute().parent).is_dir():
        raise ValueError(
            f"There is no folder {folder} to write {Path(path).name} into; make it first."
        )
    return Path(path)


OutputFile = Annotated[Path, output_file]


def _add_commands(parser: argparse.ArgumentParser, commands: Commands) -> None:
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command in commands.items():
        if isinstance(command, Mapping):
            _add_commands(subparsers.add_parser(name, help=", ".join(command)), command)
            continue
        line = (command.__doc__ or " ").partition("\n")[0].removesuffix(".")
        line = line[0].lower() + line[1:]
        subparser = subparsers.add_parser(name, help=line.replace("%", "%%"), description=line)
        subparser.set_defaults(run=_add_parameters(subparser, command))


def _add_parameters(parser: argparse.ArgumentParser, function: Callable[..., Any]) -> Maker:
    """Adds the parameters of a function, or the fields of a dataclass; what calls it with their
    values."""
    hints = get_type_hints(function, include_extras=True)
    makers = dict[str, Maker]()
    owners = reversed(
        getattr(function, "__mro__", (function,))
    )  # a class has its bases' docstrings, too
    rows = [row for owner in owners for row in _TEXT.findall(cleandoc(owner.__doc__ or ""))]
    texts = {name: (*filter(None, [sign]), " ".join(text.split())) for name, sign, text in rows}
    for name, parameter in signature(function).parameters.items():
        makers[name] = _add_parameter(parser, parameter, hints[name], texts.get(name, ()))
    return lambda values: function(**{name: maker(values) for name, maker in makers.items()})


def _add_parameter(
    parser: argparse.ArgumentParser, parameter: Parameter, hint: Any, notes: tuple[str, ...]
) -> Maker:
    name = parameter.name
    table = next((arg for arg in get_args(hint) if isinstance(arg, Mapping)), None)
    if isinstance(hint, type) and is_dataclass(hint):
        return _add_parameters(parser, hint)
    if table is not None:
        for option, kind in table.items():
            _add(parser, option, declared(kind), None)
        return lambda values: {
            option: values[option] for option in table if values[option] is not None
        }
    value = declared(hint)
    value = replace(value, notes=(*value.notes, *notes))
    _add(parser, name, value, parameter.default, parameter.kind is Parameter.KEYWORD_ONLY)
    return lambda values: tuple(values[name]) if value.many else values[name]


def _add(
    parser: argparse.ArgumentParser,
    name: str,
    value: Declared,
    default: Any,
    is_option: bool = True,
) -> None:
    """Adds an option, or an argument."""
    required = default is Parameter.empty
    *placeholder, text = value.notes
    if default not in (Parameter.empty, None, False, (), ""):
        text += f" (default: {default})"
    more: dict[str, Any] = {
        "help": text.replace("%", "%%"),
        "default": None if required else default,
    }
    if several := get_origin(value.type) is list:  # an option that may be given several times
        value = declared(*get_args(value.type))
    if value.type is bool:
        more["action"] = "store_true"
    elif choices := [choice for kind in value.kinds for choice in kind.choices]:
        more["choices"] = choices
    else:
        more["metavar"] = placeholder[0] if placeholder else _METAVARS.get(value.type, name.upper())
        more["type"] = partial(_read, value)
    if several:
        more["action"] = "append"
    elif value.many:
        more["nargs"] = "+" if is_option or required else "*"
    elif not is_option and not required:
        more["nargs"] = "?"
    if is_option:
        more["required"] = required
    parser.add_argument("--" + name.replace("_", "-") if is_option else name, **more)


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
