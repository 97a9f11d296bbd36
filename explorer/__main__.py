"""The command line: `python -m explorer page`, `live`, `align` and `survey`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from transformer.commands.program import Parser, run_program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    return run_program(_parser, argv)


def _parser() -> argparse.ArgumentParser:
    from explorer.lenses.commands import align, survey
    from explorer.linked.live import command as live
    from explorer.linked.living import command as page

    parser = Parser(prog="python -m explorer", description=__doc__)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for each in (page, live, align, survey):
        each.add_command(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
