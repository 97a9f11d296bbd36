"""Both programs as one, for tests that train a model and then measure it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lab.__main__ import main as lab
from transformer.__main__ import MOVED
from transformer.__main__ import main as transformer


def main(argv: Sequence[str]) -> int:
    """Runs a command of the package or of the laboratory."""
    return (lab if argv and argv[0] in MOVED else transformer)(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
