"""The commands that exchange models with the Hub: push, pull."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.storage.files import CheckpointError

if TYPE_CHECKING:
    from transformer.hub.fetch import Snapshot

_EVERY = 0.2
"""Seconds between two reports of a download."""


def add_commands(commands: Any) -> None:
    """Declares the commands on an argparse sub-parser collection."""
    text = "publish a model directory on the Hub"
    push: argparse.ArgumentParser = commands.add_parser("push", help=text, description=text)
    push.add_argument("directory", type=Path, metavar="DIR", help="model directory")
    push.add_argument("name", metavar="OWNER/MODEL", help="its name on the Hub")
    push.add_argument("--private", action="store_true", help="for your own eyes, where the name is new")
    push.add_argument("--license", metavar="NAME", help="such as cc-by-4.0; where the card has none")
    push.add_argument(
        "--language",
        nargs="+",
        default=(),
        metavar="CODE",
        help="such as en de; where the card has none",
    )
    push.set_defaults(run=push_model)
    text = "fetch a model of the Hub, and print the directory that holds it"
    pull: argparse.ArgumentParser = commands.add_parser("pull", help=text, description=text)
    pull.add_argument("name", metavar="OWNER/MODEL", help="such as Helsinki-NLP/opus-mt-en-de")
    pull.add_argument("--revision", metavar="NAME", help="branch, tag or commit")
    pull.add_argument("--output", type=Path, metavar="DIR", help="copy the model here, into a new directory")
    pull.set_defaults(run=pull_model)


def push_model(arguments: argparse.Namespace) -> int:
    """`push`: publishes a directory and prints the address of its page."""
    from transformer.hub.push import push_to_hub

    pushed = push_to_hub(
        arguments.directory,
        arguments.name,
        arguments.private,
        license=arguments.license,
        languages=arguments.language,
    )
    print(f"{pushed.url} at {pushed.commit}")
    return 0


def pull_model(arguments: argparse.Namespace) -> int:
    """`pull`: fetches a model into the cache, and copies it where asked to."""
    from transformer.hub.fetch import find

    output: Path | None = arguments.output
    if output is not None and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CheckpointError(f"{output} is there already; name a new directory.")
    snapshot = find(arguments.name, arguments.revision, progress=_Report())
    print(f"{snapshot.title} is complete.", file=sys.stderr)
    if output is not None:
        _copy(snapshot, output)
    print(output or snapshot.directory)
    return 0


def _copy(snapshot: Snapshot, output: Path) -> None:
    """Copies the files of a model, not what other programs fetched beside them."""
    from transformer.hub.files import needed

    names = [path.name for path in snapshot.directory.iterdir() if path.is_file()]
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name in needed(names, snapshot.name):
            shutil.copyfile(snapshot.directory / name, output / name)
    except OSError as error:
        raise CheckpointError(f"The model cannot be copied to {output}: {error.strerror}.") from error


class _Report:
    """Writes how far a download is, on one line of a terminal."""

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
