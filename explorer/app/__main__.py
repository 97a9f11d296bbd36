"""``python -m explorer.app lesson check FILE…`` says what is wrong with lessons; 1 if anything is.

``python -m explorer.app lesson table FOLDER`` shows what a class has done, from its files of progress.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from transformer.commands.program import Parser, run_program
from transformer.storage.files import write_atomically


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    return run_program(_parser, argv)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m explorer.app", description="Tools of the app.")
    subjects = parser.add_subparsers(required=True, metavar="lesson")
    lesson = subjects.add_parser("lesson", help="lessons as files, see docs/lessons.md")
    actions = lesson.add_subparsers(required=True, metavar="check|table")
    check = actions.add_parser("check", help="say what is wrong with lessons, with line numbers")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE")
    check.set_defaults(run=_check)
    table = actions.add_parser("table", help="show what a class has done, from its files of progress")
    table.add_argument("folder", type=Path, metavar="FOLDER")
    table.add_argument("--csv", metavar="FILE", help="write the table as CSV; - writes it here, alone")
    table.set_defaults(run=_table)
    return parser


def _check(arguments: argparse.Namespace) -> int:
    """Checks the files; prints ``file:line: what is wrong``."""
    from explorer.app.server.lessons.check import check  # loads PyTorch
    from explorer.app.server.lessons.files import shown

    wrong = False
    for path in arguments.files:
        for line, text in check(path):
            wrong = True
            print(f"{shown(path)}:{line}: {text}", flush=True)
    if not wrong:
        print(
            f"{len(arguments.files)} lesson{'s' * (len(arguments.files) != 1)}: nothing is wrong.", flush=True
        )
    return int(wrong)


def _table(arguments: argparse.Namespace) -> int:
    """Prints the table, or writes it; 1 if a file could not be read."""
    from explorer.app.server.cells import written
    from explorer.app.server.lessons.table import of_folder

    found = of_folder(arguments.folder)
    lines = [found.head, *found.rows]
    if arguments.csv == "-":
        print(written(lines), end="", flush=True)
    else:
        if arguments.csv is not None:
            write_atomically(Path(arguments.csv), written(lines).encode())
        else:
            widths = [max(len(str(line[i])) for line in lines) for i in range(len(found.head))]
            for line in lines:
                cells = (str(cell).ljust(width) for cell, width in zip(line, widths, strict=True))
                print("  ".join(cells).rstrip())
        print(found.told, flush=True)
    for text in found.wrong:
        print(text, file=sys.stderr, flush=True)
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
