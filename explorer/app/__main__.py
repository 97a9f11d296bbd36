"""``python -m explorer.app lesson check FILE…`` says what is wrong with lessons; 1 if anything
is."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from transformer.commands.program import Commands, run_program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    commands: Commands = {"lesson": {"check": check_lessons}}
    return run_program("python -m explorer.app", "Tools of the app.", lambda: commands, argv)


def check_lessons(
    files: Annotated[tuple[Path, ...], "FILE", "lessons, see docs/lessons.md"],
) -> int:
    """Say what is wrong with lessons."""
    from explorer.app.lessons.asking import check  # loads PyTorch
    from explorer.figures.base import labels

    wrong = False
    for path in files:
        for text in check(path):
            wrong = True
            print(text, flush=True)
    if not wrong:
        print(f"{labels.counted(len(files), 'lesson')}: nothing is wrong.", flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
