"""A model as a page that translates: `python -m explorer live --model DIR --output live.html`."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from transformer.storage.files import write_atomically


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    from transformer.commands.arguments import output_file

    parser = commands.add_parser(
        "live", help="write a page in which a model translates in its reader's browser"
    )
    parser.set_defaults(run=_write)
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="sentences to start from; the first opens")
    parser.add_argument("--model", required=True, metavar="DIR", help="directory of a model of this package")
    parser.add_argument("--output", required=True, type=output_file, metavar="PATH", help="the page")
    text = "write a folder for a web space: index.html, and the model's files beside it"
    parser.add_argument("--folder", action="store_true", help=text)


def _write(arguments: argparse.Namespace) -> int:
    from explorer.linked.live.page import PIECES, WEIGHTS, live

    path, folder = Path(arguments.output), arguments.folder
    page = live(arguments.model, arguments.texts, folder=folder).encode()
    if folder:
        path.mkdir(exist_ok=True)
        for name in (WEIGHTS, PIECES):
            shutil.copyfile(Path(arguments.model) / name, path / name)
    write_atomically(path / "index.html" if folder else path, page)
    print(f"{path}: {len(page) / 1e6:.1f} MB{', and the model beside it' * folder}")
    return 0
