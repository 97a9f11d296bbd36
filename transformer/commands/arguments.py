"""Shared code of the commands that use a model: arguments, opening the model, writing lines."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformer.decoding import SearchRules
from transformer.devices import AUTO, LARGE, VARIABLE, choose_device
from transformer.text.kinds import at_least
from transformer.text.pairs import DataError
from transformer.training.distributed import Workers, joined
from transformer.translator import TYPES, Translator, load_translator

Json = dict[str, Any]
_ESCAPED = re.compile("[\udc80-\udcff]")
MOST_TOLD = 20
"""Bad lines that are named one by one."""


def command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    """Declares a command; returns its parser, for further arguments."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(run=run)
    return parser


def model_command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    """Declares a command that opens a model; returns its parser, for further arguments."""
    parser = command(commands, name, run, text)
    parser.add_argument("--model", required=True, metavar="DIR", help="directory, or owner/model on the Hub")
    parser.add_argument("--revision", metavar="NAME", help="branch, tag or commit of a model on the Hub")
    add_device(parser)
    parser.add_argument("--dtype", default="float32", choices=TYPES, help="number type of the computation")
    parser.add_argument("--json", action="store_true", help="print lines of JSON")
    return parser


def add_device(parser: argparse.ArgumentParser) -> None:
    """Declares ``--device``."""
    text = f"auto, cpu or cuda; auto is what {VARIABLE} says, or cuda for training and for models from "
    text += f"{LARGE // 1_000_000} million parameters on, where there is one, else cpu"
    parser.add_argument("--device", default=AUTO, help=text)


def option(parser: Any, flag: str, kind: Callable[[str], Any], metavar: str, text: str, **more: Any) -> None:
    """Declares an option that takes a value."""
    parser.add_argument(flag, type=kind, metavar=metavar, help=text, **more)


def add_beam(parser: argparse.ArgumentParser) -> None:
    """Declares `--beam-size` and how a beam scores."""
    option(parser, "--beam-size", int, "N", "beam width; 1 is greedy", default=1)
    option(parser, "--length-penalty", float, "A", "a of a beam's score, sum of log p / length^a")
    text = "divide by ((K + length) / (K + 1))^a instead; 5 is the formula of Wu et al. (2016)"
    option(parser, "--length-offset", int, "K", text)


def open_model(arguments: argparse.Namespace) -> Translator:
    """The model that the arguments name."""
    check_beam_size(arguments)
    translator = load_translator(arguments.model, arguments.device, arguments.dtype, arguments.revision)
    translator.rules = scored(translator.rules, arguments)
    arguments.answers = translator
    return translator


def scored(rules: SearchRules, arguments: argparse.Namespace) -> SearchRules:
    """The rules of a model, whose beams score as the arguments say, if they do."""
    penalty = (getattr(arguments, name, None) for name in ("length_penalty", "length_offset"))
    return rules.with_penalty(*penalty)


def check_beam_size(arguments: argparse.Namespace) -> None:
    """Raises ValueError for a beam narrower than 1."""
    at_least(1).check("The beam size", getattr(arguments, "beam_size", 1))


@contextmanager
def shared_model(arguments: argparse.Namespace) -> Iterator[tuple[Translator, Workers]]:
    """The model that the arguments name, in each of the processes that torchrun has started, if any.

    Several processes take GPUs as training does, whatever the size of the model.
    """
    check_beam_size(arguments)
    with joined(choose_device(arguments.device)) as (workers, device):
        arguments.device = device if workers.world > 1 else arguments.device
        yield open_model(arguments), workers


def write(arguments: argparse.Namespace, values: Json, text: str) -> None:
    """Writes a line of JSON, with the device that computed it, or the text."""
    where = {"device": str(arguments.answers.device)} if hasattr(arguments, "answers") else {}
    print(json.dumps(values | where, ensure_ascii=False) if arguments.json else text, flush=True)


def warn(notes: Iterable[str], where: str = "") -> None:
    """Writes notes for the reader on standard error."""
    for note in notes:
        print(f"{where}{note}", file=sys.stderr)


def standard_input() -> Iterable[bytes]:
    """The lines of standard input; none if whoever started the program closed it."""
    return () if sys.stdin is None else sys.stdin.buffer


def line_text(given: str | bytes) -> str:
    """A text of the command line, or a line of standard input; DataError if it is not UTF-8."""
    try:
        if isinstance(given, bytes):
            return given.decode("utf-8").rstrip("\r\n")
        # In a locale without UTF-8, bytes of an argument arrive as lone surrogates.
        return os.fsencode(given).decode("utf-8") if _ESCAPED.search(given) else given
    except UnicodeError as error:
        raise DataError("This is not UTF-8 text.") from error


def told(bad: Sequence[str]) -> int:
    """Names what was left out, on standard error; the exit status, 1 if there is any."""
    warn(bad[:MOST_TOLD])
    if len(bad) > MOST_TOLD:
        print(f"So are {len(bad) - MOST_TOLD:,} more.", file=sys.stderr)
    return int(bool(bad))


def output_file(path: str) -> Path:
    """An argument that names a file to write."""
    try:
        return in_folder(Path(path))
    except DataError as error:
        raise argparse.ArgumentTypeError(str(error).removesuffix(".")) from error


def in_folder(path: Path) -> Path:
    """The file; DataError, before any work begins, if its folder is missing."""
    if not (folder := path.absolute().parent).is_dir():
        raise DataError(f"There is no folder {folder} to write {path.name} into; make it first.")
    return path


def percent(share: float) -> str:
    """A share from 0 to 1 as people read it: `61.2 %`."""
    return f"{100 * share:.1f} %"


def command_line() -> str:
    """The command that runs, as a shell reads it."""
    return shlex.join(["python", "-m", "transformer", *sys.argv[1:]])


def shown(path: str | Path) -> str:
    """A file with its folder; the folders above are left out."""
    return "/".join(Path(path).parts[-2:])
