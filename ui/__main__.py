"""``python -m ui lesson check FILE…`` says what is wrong with lessons; 1 if anything is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Checks the files; prints ``file:line: what is wrong``."""
    parser = argparse.ArgumentParser(prog="python -m ui", description="Tools of the app.")
    subjects = parser.add_subparsers(required=True, metavar="lesson")
    lesson = subjects.add_parser("lesson", help="lessons as files, see docs/lessons.md")
    actions = lesson.add_subparsers(required=True, metavar="check")
    check = actions.add_parser("check", help="say what is wrong with lessons, with line numbers")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE")
    files = parser.parse_args(argv).files

    from ui.server.lessons.check import check as check_file  # loads PyTorch

    wrong = [(path, *each) for path in files for each in check_file(path)]
    for path, line, text in wrong:
        print(f"{path}:{line}: {text}")
    if not wrong:
        print(f"{len(files)} lesson{'s' * (len(files) != 1)}: nothing is wrong.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
