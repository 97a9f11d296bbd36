"""The measurements on the command line: `python -m lab COMMAND`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from transformer.commands.program import Parser, run_program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    return run_program(_parser, argv)


def _parser() -> argparse.ArgumentParser:
    from lab.birth import command as birth
    from lab.cost import command as cost
    from lab.experiments import command as experiments
    from lab.hard_attention import command as hard_attention
    from lab.heads import command as heads
    from lab.language import command as language
    from lab.learning import adam, history
    from lab.models import card, familiarity, remake, scores, showcase
    from lab.pretraining import command as pretraining
    from lab.recurrent import command as recurrent
    from lab.relations import command as relations
    from lab.texts import command as texts
    from lab.texts import links
    from lab.twins import command as twins

    parser = Parser(prog="python -m lab", description=__doc__)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for each in (heads, experiments, showcase):
        each.add_commands(subparsers)
    for one in (familiarity, scores, history, adam, card, remake, twins, recurrent, hard_attention):
        one.add_command(subparsers)
    for one in (relations, links, texts, language, pretraining, birth, cost):
        one.add_command(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
