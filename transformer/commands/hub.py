"""`python -m transformer pull`: downloads a model from the Hub."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.commands.arguments import command, option
from transformer.storage.files import CheckpointError

if TYPE_CHECKING:
    from transformer.hub.cache import Snapshot

_EVERY = 0.2
"""Seconds between two progress reports of a download."""


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "download a model from the Hub, and print its directory"
    pull = command(commands, "pull", pull_model, text)
    pull.add_argument("name", metavar="OWNER/MODEL", help="name, such as Helsinki-NLP/opus-mt-en-de")
    pull.add_argument("--revision", metavar="NAME", help="branch, tag or commit")
    option(pull, "--output", Path, "DIR", "copy the model to this new directory")


def pull_model(arguments: argparse.Namespace) -> int:
    """`pull`: downloads a model to the cache, and copies it to `--output` if given."""
    from transformer.hub.fetch import find

    output: Path | None = arguments.output
    if output is not None and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CheckpointError(
            f"{output} already exists and is not an empty directory; choose a new directory."
        )
    snapshot = find(arguments.name, arguments.revision, progress=_Report())
    print(f"{snapshot.title} is downloaded and complete.", file=sys.stderr)
    if output is not None:
        _copy(snapshot, output)
    print(output or snapshot.directory)
    return 0


def _copy(snapshot: Snapshot, output: Path) -> None:
    """Copies the files of a model, without files that other programs downloaded to the same folder."""
    from transformer.hub.files import needed

    names = [path.name for path in snapshot.directory.iterdir() if path.is_file()]
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name in needed(names, snapshot.name):
            shutil.copyfile(snapshot.directory / name, output / name)
    except OSError as error:
        raise CheckpointError(f"The model cannot be copied to {output}: {error.strerror}.") from error


class _Report:
    """Shows the progress of a download on one line of a terminal."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._shown = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        finished = done >= total
        if not self._shown or (not finished and time.monotonic() - self._last < _EVERY):
            return
        self._last = time.monotonic()
        end = "\n" if finished else ""
        print(f"\r{done / 1e6:,.0f} of {total / 1e6:,.0f} MB", end=end, file=sys.stderr, flush=True)
