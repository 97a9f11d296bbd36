"""The command line: `python -m explorer page`, `live`, `align` and `survey`."""

import sys
from collections.abc import Sequence

from transformer.commands.program import Commands, run_program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    return run_program("python -m explorer", __doc__, _commands, argv)


def _commands() -> Commands:
    from explorer.commands.align import align
    from explorer.commands.live import live
    from explorer.commands.page import page
    from explorer.commands.survey import survey

    return {each.__name__: each for each in (page, live, align, survey)}


if __name__ == "__main__":
    sys.exit(main())
