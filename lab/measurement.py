"""Commands of the laboratory, and the files in which they write what they measured.

A command is a function: its parameters are the options, and what each means stands beside it in `Annotated`.
A measurement is a command that returns what stands in a JSON file, whose head says of which model, when and
by which command. Values that are functions are parts: they are measured one by one, and alone by `--only`.
What a measurement says to readers are its studies, written after it (`lab/study.py`).
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from inspect import getdoc, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
import torch

from lab.study import SHIPPED, Told, write
from transformer.commands.arguments import add_device, in_folder
from transformer.commands.options import add_option, flag
from transformer.commands.program import Parser
from transformer.runs.devices import choose_device
from transformer.runs.translator import TYPES, Translator, load_translator
from transformer.storage.description import model_digests
from transformer.storage.files import read_json, write_json
from transformer.storage.marks import measured
from transformer.text.kinds import whole
from transformer.training.distributed import Workers, joined

Json = dict[str, Any]
File = Annotated[Path, "FILE"]
Folder = Annotated[Path, "DIR"]
Pairs = Annotated[Path, "FILE", "source<TAB>target lines; targets are forced"]
Gold = Annotated[Path, "FILE", "source<TAB>target<TAB>links lines"]
Model = Annotated[Path, "DIR", "directory of the model"]
_HEAD = ("version", "model", "data", "command", "date", "digests")
"""First keys of a file, in this order."""


@dataclass(frozen=True)
class Subject:
    """The model that a command measures, in each of the processes that torchrun has started."""

    directory: Path  # its directory
    translator: Translator  # the model
    workers: Workers  # the processes


@dataclass(frozen=True)
class Command:
    """A function as a command."""

    make: Callable[..., Any]  # the function
    parts: Sequence[str] = ()  # what can be done alone, by --only

    @property
    def name(self) -> str:
        """The word that calls it."""
        return self.make.__name__.replace("_", "-")

    @cached_property
    def parameters(self) -> dict[str, tuple[Any, Any]]:
        """Type and default of every parameter of the function."""
        hints = get_type_hints(self.make, include_extras=True)
        return {name: (hints[name], each.default) for name, each in signature(self.make).parameters.items()}

    def declare(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options to a parser."""
        if self.parts:
            text = f"make these parts alone, of {', '.join(self.parts)}"
            parser.add_argument(
                "--only", nargs="+", choices=self.parts, default=(), metavar="PART", help=text
            )
        for name, (hint, default) in self.parameters.items():
            if hint is Subject:
                add_option(parser, "model", Model)
                add_device(parser)
                parser.add_argument("--dtype", default="float32", choices=TYPES, help="type of the numbers")
            elif name != "only":
                add_option(parser, name, hint, default, counts=whole(1))

    def run(self, arguments: argparse.Namespace) -> int:
        """Calls the function; returns the exit status: 1 if a person has to mend something."""
        with self.given(arguments) as given:
            return int(self.make(**given) or 0)

    @contextmanager
    def given(self, arguments: argparse.Namespace) -> Iterator[Json]:
        """Arguments by parameter; the model is open meanwhile."""
        given = {name: getattr(arguments, name) for name in self.parameters}
        given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        if self.parameters.get("model", (None,))[0] is not Subject:
            yield given
            return
        if not arguments.model.is_dir():
            raise ValueError(f"There is no directory {arguments.model} to write into; see `pull --output`.")
        with joined(choose_device(arguments.device)) as (workers, device):
            place = device if workers.world > 1 else arguments.device
            translator = load_translator(arguments.model, place, arguments.dtype)
            yield given | {"model": Subject(arguments.model, translator, workers)}


@dataclass(frozen=True)
class Measurement(Command):
    """A command that returns what stands in a JSON file."""

    # the file: a name beside the model that is measured, or in the folder of models; a path with folders is
    # the default of --output, and an empty one asks for --output
    file: str = ""
    dated: bool = False  # whether each part has its own date and command, instead of the file
    studies: Mapping[str, Told] = field(default_factory=dict)  # what is told of it, by name of the document

    def declare(self, parser: argparse.ArgumentParser) -> None:
        super().declare(parser)
        if not self.beside:
            text = f"JSON file to write (default: {self.file or 'none'}{', in --models' * self.in_folder})"
            parser.add_argument("--output", type=Path, metavar="FILE", required=not self.file, help=text)
        parser.add_argument("--json", action="store_true", help="print what is written as a line of JSON")

    @property
    def in_folder(self) -> bool:
        """True if the file stands in the folder of the models that are measured."""
        return "/" not in self.file and "models" in self.parameters

    @property
    def beside(self) -> bool:
        """True if the file stands beside the one model that is measured."""
        return bool(self.file) and "/" not in self.file and not self.in_folder

    def path(self, arguments: argparse.Namespace) -> Path:
        """The file to write."""
        if self.beside:
            return Path(arguments.model, self.file)
        folder = arguments.models if self.in_folder else Path()
        return Path(arguments.output or folder / self.file)

    def complete(self, values: Json) -> bool:
        """True if all parts were measured, without which no study is told."""
        return all(name in values for name in self.parts)

    def shipped(self, path: Path) -> bool:
        """True if a file is that which the app ships, not one beside a model."""
        return not self.beside and path.parts[:1] == SHIPPED.parts[:1]

    def run(self, arguments: argparse.Namespace) -> int:
        """Measures, writes the file after each part, and says so."""
        path = self.path(arguments) if self.beside else in_folder(self.path(arguments))
        named = dict.fromkeys([*self.parameters, "only", "output"])
        made = about(self.name, **{name: getattr(arguments, name, None) for name in named})
        with self.given(arguments) as given:
            found: Json = self.make(**given)
            subject = given["model"] if isinstance(given.get("model"), Subject) else None
            first = subject is None or subject.workers.first
            only = arguments.only if self.parts else ()
            known = self._known(path) if only else {}
            head = self._head(path, subject) | ({} if self.dated else made)
            values = {name: value for name, value in found.items() if not callable(value)} | head
            values = {name: values[name] for name in _HEAD if name in values} | values | known
            for name in only or self.parts:
                part = found[name]()
                values[name] = made | part if self.dated else part
                if known and not self.dated:
                    values["again"] = values.get("again", {}) | {name: made}
                if first:
                    write_json(path, values)
                    report(f"measured {name}")
            if first:
                write_json(path, values)
                self._tell(values, path, bool(only))
                text = json.dumps(values, ensure_ascii=False) if arguments.json else f"Wrote {path}."
                print(text, flush=True)
        return 0

    def _tell(self, values: Json, path: Path, again: bool) -> None:
        """Writes the documents; parts that an older version measured, which were kept, may not fit them."""
        for name, tell in self.studies.items() if self.complete(values) else ():
            try:
                study = tell(values)
            except (KeyError, TypeError):
                if not again:
                    raise
                report(f"{path} has parts of an older form, so nothing is told of {name}; measure all")
                continue
            report(f"wrote {write(name, study, values, path, self.shipped(path))}")

    def _known(self, path: Path) -> Json:
        """Content of the file, if there is one of the same model."""
        if self.beside:
            return measured(path.parent, path.name) or {}
        return read_json(path) if path.is_file() else {}

    def _head(self, path: Path, subject: Subject | None) -> Json:
        if not self.beside:
            return {}
        name = path.parent.name if subject is None else subject.translator.name
        return {"model": name, "digests": model_digests(path.parent)}


def command(parts: Sequence[str] = ()) -> Callable[[Callable[..., int | None]], Command]:
    """Makes a command of a function; arguments as the fields of `Command`."""
    return lambda make: Command(make, tuple(parts))


def measurement(
    file: str = "",
    parts: Iterable[str] = (),
    *,
    dated: bool = False,
    studies: Mapping[str, Told] | None = None,
) -> Callable[[Callable[..., Json]], Measurement]:
    """Makes a measurement of a function; arguments as the fields of `Measurement`."""
    return lambda make: Measurement(make, tuple(parts), file, dated, studies or {})


def parser_of(commands: Iterable[Command]) -> argparse.ArgumentParser:
    """A parser of some commands."""
    parser = Parser(prog="python -m lab", description="The measurements behind the shipped results.")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for each in commands:
        text = (getdoc(each.make) or "").partition("\n\n")[0].replace("\n", " ")
        own = subparsers.add_parser(each.name, help=text, description=text)
        each.declare(own)
        own.set_defaults(run=each.run)
    return parser


def about(name: str, **options: object) -> dict[str, str]:
    """The command that makes a file again, as a shell reads it, and today's date."""
    words = ["python", "-m", "lab", name]
    for option, value in options.items():
        values = value if isinstance(value, list | tuple) else [value] if value else []
        if values:
            words += [flag(option), *(str(each) for each in values if each is not True)]
    return {"command": shlex.join(words), "date": date.today().isoformat()}


def report(done: str) -> None:
    """Reports a finished stage on standard error."""
    print(f"{time.strftime('%H:%M:%S')} {done}", file=sys.stderr, flush=True)


def listed(values: Any, digits: int = 4) -> Any:
    """Numbers of any shape as rounded lists."""
    return np.round(np.asarray(values, np.float64), digits).tolist()


@contextmanager
def one_thread() -> Iterator[None]:
    """Lets PyTorch compute with one thread meanwhile, so that times can be compared."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
