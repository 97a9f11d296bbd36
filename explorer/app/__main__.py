"""``python -m explorer.app lesson check FILE…`` says what is wrong with lessons; 1 if anything is.

``python -m explorer.app lesson table FOLDER`` shows what a class has done, from its files of progress.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from transformer.commands.program import Commands, run_program
from transformer.storage.files import write_atomically


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    commands: Commands = {"lesson": {"check": check_lessons, "table": table}}
    return run_program("python -m explorer.app", "Tools of the app.", lambda: commands, argv)


def check_lessons(files: Annotated[tuple[Path, ...], "FILE", "lessons, see docs/lessons.md"]) -> int:
    """Say what is wrong with lessons, with line numbers."""
    from explorer.app.server.lessons.asking import check  # loads PyTorch
    from explorer.app.server.lessons.files import printable

    wrong = False
    for path in files:
        for line, text in check(path):
            wrong = True
            print(f"{printable(path)}:{line}: {text}", flush=True)
    if not wrong:
        print(f"{len(files)} lesson{'s' * (len(files) != 1)}: nothing is wrong.", flush=True)
    return int(wrong)


def table(
    folder: Annotated[Path, "FOLDER", "the files of progress"],
    *,
    csv: Annotated[str | None, "FILE", "write the table as CSV; - writes it here, alone"] = None,
) -> int:
    """Show what a class has done, from its files of progress.

    The exit status is 1 if a file could not be read.
    """
    from explorer.app.server.cells import written
    from explorer.app.server.lessons.table import of_folder

    found = of_folder(folder)
    lines = [found.head, *found.rows]
    if csv == "-":
        print(written(lines), end="", flush=True)
    else:
        if csv is not None:
            write_atomically(Path(csv), written(lines).encode())
        else:
            widths = [max(len(str(line[i])) for line in lines) for i in range(len(found.head))]
            for line in lines:
                cells = (str(cell).ljust(width) for cell, width in zip(line, widths, strict=True))
                print("  ".join(cells).rstrip())
        print(found.summary, flush=True)
    for text in found.wrong:
        print(text, file=sys.stderr, flush=True)
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
