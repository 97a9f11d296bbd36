"""Streamlit as the tests of a cold server start it: the loading behind the first picture waits at a
gate.

    python cold_app.py GATE run app.py …

The gate is a named pipe: before it imports anything, the loading thread waits until somebody opens
the other end.
"""

import sys
from collections.abc import Callable


def gated(run: Callable[[object], None], gate: str) -> Callable[[object], None]:
    """The body of the loading thread, behind the gate."""

    def held(self: object) -> None:
        with open(gate, "rb"):
            run(self)

    return held


def main() -> None:
    """Runs Streamlit with the arguments that follow the gate."""
    from streamlit.web import cli

    from explorer.app.server.loading import Loading

    gate, *arguments = sys.argv[1:]
    Loading._run = gated(Loading._run, gate)  # type: ignore[method-assign]
    sys.argv = ["streamlit", *arguments]
    cli.main()


if __name__ == "__main__":
    main()
