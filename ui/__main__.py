"""``python -m ui lesson check FILE…`` says what is wrong with lessons; 1 if anything is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from transformer.commands.program import Parser, run_program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    return run_program(_parser, argv)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m ui", description="Tools of the app.")
    subjects = parser.add_subparsers(required=True, metavar="lesson")
    lesson = subjects.add_parser("lesson", help="lessons as files, see docs/lessons.md")
    actions = lesson.add_subparsers(required=True, metavar="check")
    check = actions.add_parser("check", help="say what is wrong with lessons, with line numbers")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE")
    check.set_defaults(run=_check)
    return parser


def _check(arguments: argparse.Namespace) -> int:
    """Checks the files; prints ``file:line: what is wrong``."""
    from ui.server.lessons.check import check  # loads PyTorch
    from ui.server.lessons.files import shown

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


if __name__ == "__main__":
    sys.exit(main())
