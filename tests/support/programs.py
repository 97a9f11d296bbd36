"""Both programs as one, for tests that train a model and then measure it."""

import sys
from collections.abc import Sequence

from explorer.__main__ import main as explorer
from transformer.__main__ import main as transformer


def main(argv: Sequence[str]) -> int:
    """Runs a command of the package or of the explorer."""
    return (explorer if argv and argv[0] in ("page", "align", "survey") else transformer)(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
