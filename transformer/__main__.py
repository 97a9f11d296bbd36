"""The command line: `python -m transformer COMMAND`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from transformer.commands.program import Parser, run_program

MOVED = frozenset(
    [
        *("heads", "survey", "means"),
        *("familiarity", "scores", "card", "claims", "first", "remake"),
        *("positions", "recurrent", "hard-attention", "text", "language"),
        *("pretraining", "birth", "cost", "adam", "history"),
    ]
)
"""Commands that `python -m lab` has."""
LENSES = frozenset({"explain", "align"})
"""Commands that `python -m lenses` has."""
GONE = frozenset({"probes", "backups", "experiments", "links"})
"""Commands that no program has now; `python -m lab` says of each what answers instead."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    asked = sys.argv[1:] if argv is None else argv
    home = "lab" if asked and asked[0] in MOVED else "lenses" if asked and asked[0] in LENSES else ""
    if asked and asked[0] in GONE:
        print(f"This command is gone; python -m lab {asked[0]} says what answers now.", file=sys.stderr)
        return 2
    if home:
        print(f"This command has moved: python -m {home} {asked[0]}.", file=sys.stderr)
        return 2
    return run_program(_parser, argv)


def _parser() -> argparse.ArgumentParser:
    from transformer.commands import (
        attention,
        compress,
        generate,
        hub,
        score,
        train,
        train_lm,
        translate,
    )
    from transformer.commands.training import distil

    parser = Parser(prog="python -m transformer", description=__doc__)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for each in (train, train_lm, distil, compress, attention, score):
        each.add_command(subparsers)
    for each in (translate, generate, hub):
        each.add_commands(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
