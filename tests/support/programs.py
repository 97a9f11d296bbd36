"""All programs as one, for tests that train a model and then measure it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lab.__main__ import main as lab
from lenses.__main__ import main as lenses
from transformer.__main__ import LENSES, MOVED
from transformer.__main__ import main as transformer


def main(argv: Sequence[str]) -> int:
    """Runs a command of the package, of the lenses or of the laboratory."""
    asked = argv[0] if argv else ""
    return (lab if asked in MOVED else lenses if asked in LENSES else transformer)(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
