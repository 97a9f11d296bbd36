"""The command line: `python -m transformer COMMAND`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from transformer.commands.program import Parser, run_program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    return run_program(_parser, argv)


def _parser() -> argparse.ArgumentParser:
    from transformer.commands import (
        attention,
        compress,
        generate,
        hub,
        score,
        train,
        translate,
    )

    parser = Parser(prog="python -m transformer", description=__doc__)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for each in (train, compress, attention, score, hub):
        each.add_command(subparsers)
    for each in (translate, generate):
        each.add_commands(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
