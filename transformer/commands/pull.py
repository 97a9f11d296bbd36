"""`python -m transformer pull`: downloads a model from the Hub."""

import sys
import time
from pathlib import Path

from transformer.commands.compress import check_new
from transformer.hub.files import needed
from transformer.storage.files import CheckpointError, write_together

_EVERY = 0.2
"""Seconds between two progress reports of a download."""


def pull(name: str, *, revision: str | None = None, output: Path | None = None) -> int:
    """Download a model from the Hub, and print its directory.

    name [OWNER/MODEL]: name, such as Helsinki-NLP/opus-mt-en-de
    revision: branch, tag or commit
    output [DIR]: copy the model to this new directory
    """
    from transformer.hub.fetch import find  # here, since it loads the client of the Hub

    if output is not None:
        check_new(output)
    terminal = sys.stderr.isatty()
    last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        if terminal and (done >= total or time.monotonic() - last >= _EVERY):
            last = time.monotonic()
            end = "\n" if done >= total else ""
            print(
                f"\r{done / 1e6:,.0f} of {total / 1e6:,.0f} MB",
                end=end,
                file=sys.stderr,
                flush=True,
            )

    snapshot = find(name, revision, progress=progress)
    print(snapshot.note or f"{snapshot.title} is downloaded and complete.", file=sys.stderr)
    if output is not None:
        # Other programs may have downloaded more files to the same folder.
        names = needed(
            [path.name for path in snapshot.directory.iterdir() if path.is_file()], snapshot.name
        )
        try:
            output.mkdir(parents=True, exist_ok=True)
            write_together(output, {name: snapshot.directory / name for name in names})
        except OSError as error:
            why = f"{error.strerror}." if error.strerror else error
            raise CheckpointError(f"The model cannot be copied to {output}: {why}") from error
    print(output or snapshot.directory)
    return 0
