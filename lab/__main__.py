"""The measurements on the command line: `python -m lab COMMAND`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from transformer.commands.program import run_program

GONE = {
    "probes": "which grammatical relations heads follow is not measured now; `survey` gives roles",
    "backups": "pairs of heads are not measured now; on the page What if, switch two heads off",
    "experiments": "answers are not stored; the page What if computes that of the experiment that is opened",
    "links": "no head is guided by links in training now; `python -m lenses align` measures heads",
}
"""Commands that are gone, and what answers now."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    asked = sys.argv[1:] if argv is None else argv
    if asked and asked[0] in GONE:
        print(f"This command is gone: {GONE[asked[0]]}.", file=sys.stderr)
        return 2
    return run_program(_parser, argv)


def _parser() -> argparse.ArgumentParser:
    from lab.documents import documents
    from lab.lines import lines
    from lab.measurement import parser_of
    from lab.models.remake import COMMANDS, remake
    from lab.studies import studies
    from lab.texts.command import text

    found = [each for each in studies() if each not in COMMANDS]
    return parser_of([*COMMANDS, remake, documents, *found, text, lines])


if __name__ == "__main__":
    sys.exit(main())
