"""A run as one HTML file: `python -m explorer page --model DIR "A sentence." --output run.html`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.interventions import Intervention
from transformer.run import Translation
from transformer.storage.files import write_atomically

if TYPE_CHECKING:
    from explorer.linked.living.known import Known

Changes = Sequence[Intervention]
Run = Callable[[str, Changes], Translation]
Make = Callable[[str], tuple[Translation, str]]
"""Makes the run of a text, and its page."""


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    from transformer.commands.arguments import add_beam, add_device, output_file

    parser = commands.add_parser("page", help="write a run as one HTML file with every head")
    parser.set_defaults(run=_write)
    parser.add_argument("--model", required=True, metavar="DIR", help="directory of a model, of either sort")
    parser.add_argument("text", nargs="?", metavar="TEXT", help="text to translate, or to continue")
    parser.add_argument("--file", type=Path, metavar="FILE", help="texts, one a line (.gz too)")
    text = "the page; with --file a folder, which gets an index and a page for each text"
    parser.add_argument("--output", required=True, type=output_file, metavar="PATH", help=text)
    text = "where the page opens, counted from 1: step=7&cross=3.5"
    parser.add_argument("--place", default="", metavar="PLACE", help=text)
    text = "heads that are whole in a page of more than 256 tokens: cross=3.5&cross=1.2; else those of PLACE"
    parser.add_argument("--heads", default="", metavar="HEADS", help=text)
    parser.add_argument("--beside", metavar="TEXT", help="another text, whose run stands beside the first")
    text = "directory of another model; its run stands beside the first, of the same text without --beside"
    parser.add_argument("--beside-model", metavar="DIR", help=text)
    text = (
        "changes of the run, as an address of the app has them; without --beside, it stands beside as it is"
    )
    parser.add_argument("--changes", default="", metavar="CHANGES", help=text)
    text = "what cells can say beside the weight; effect takes a run of the model for every cell of a head"
    parser.add_argument("--measure", action="append", default=[], choices=("carried", "effect"), help=text)
    text = "a step, from 1, of which the page says why its token was written"
    parser.add_argument("--why", action="append", default=[], type=int, metavar="STEP", help=text)
    add_beam(parser)
    add_device(parser)


def _write(arguments: argparse.Namespace) -> int:
    from transformer.commands.arguments import check_beam_size, line_text, warn
    from transformer.text_model import InputError

    if (arguments.text is None) == (arguments.file is None):
        raise InputError("Give one text, or a file of texts with --file.")
    check_beam_size(arguments)
    make = _maker(arguments)
    if arguments.file is not None:
        return _write_all(arguments, make)
    run, page = make(line_text(arguments.text))
    write_atomically(arguments.output, page.encode())
    print(f"{arguments.output}: {run.text}")
    warn(run.notes)
    return 0


def _maker(arguments: argparse.Namespace) -> Make:
    """Opens the models, once for all texts."""
    from explorer.linked.living.page import written
    from transformer.commands.arguments import line_text
    from transformer.interventions import read_text

    changes, text = read_text(arguments.changes), arguments.beside and line_text(arguments.beside)
    run, known = other, theirs = _opened(Path(arguments.model), arguments)
    if arguments.beside_model:
        other, theirs = _opened(Path(arguments.beside_model), arguments)

    def make(own: str) -> tuple[Translation, str]:
        found, beside = run(own, changes), None
        if text or arguments.beside_model or changes:
            beside = other(text or own, ()), theirs
        more = arguments.measure, arguments.why
        return found, written(found, known, arguments.place, arguments.heads, beside, *more)

    return make


def _opened(directory: Path, arguments: argparse.Namespace) -> tuple[Run, Known]:
    """What makes the run of a text with a model, and what is known of the model."""
    from explorer.linked.living.known import Known
    from transformer.translator import load_language_model, load_translator

    scored = {name: getattr(arguments, name) for name in ("length_penalty", "length_offset")}
    if _continues(directory):
        writer = load_language_model(directory, arguments.device)

        def write(text: str, changes: Changes) -> Translation:
            return writer.generate(text, beam_size=arguments.beam_size, interventions=changes, **scored)

        return write, Known.of(writer, directory)
    translator = load_translator(directory, arguments.device)

    def translate(text: str, changes: Changes) -> Translation:
        return translator.translate(text, beam_size=arguments.beam_size, interventions=changes, **scored)

    return translate, Known.of(translator, directory)


def _continues(directory: Path) -> bool:
    """Whether a directory holds a language model; models of other families translate."""
    from transformer.config import LanguageModelConfig
    from transformer.storage.description import read_config

    with suppress(ValueError):
        return isinstance(read_config(directory), LanguageModelConfig)
    return False


def _write_all(arguments: argparse.Namespace, make: Make) -> int:
    """A page for each line of a file, and an index of them; lines without a page are named."""
    from explorer.linked.living.index import index
    from transformer.commands.arguments import told, warn
    from transformer.text.pairs import filled_lines

    folder: Path = arguments.output
    folder.mkdir(exist_ok=True)
    written, bad = dict[int, tuple[str, str]](), []
    for number, text in filled_lines(arguments.file):
        try:
            run, page = make(text)
        except ValueError as error:
            bad.append(f"{arguments.file}:{number}: {error}")
            continue
        write_atomically(folder / f"{number}.html", page.encode())
        written[number] = text, run.text
        print(f"{folder / str(number)}.html: {run.text}")
        warn(run.notes, f"{arguments.file}:{number}: ")
    write_atomically(folder / "index.html", index(written).encode())
    return told(bad)
