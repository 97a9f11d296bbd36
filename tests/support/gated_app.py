"""Streamlit as the browser tests start it: a translation of a text that begins with ``HELD`` waits
at a gate.

The page "Heads over sentences" reads the first ``SAMPLE`` sentences only.

    python gated_app.py GATE run app.py …

The gate is a named pipe. The first tokens come slowly and the finished translation not at all,
until the test writes into the pipe; so what is shown meanwhile is there for as long as the test
looks for it.
"""

import os
import select
import sys
from collections.abc import Callable, Iterator
from typing import Any

HELD = "nine nine nine"
"""How a text begins that is held; no other test uses it."""
SLOW_TOKENS, PACE = 20, 0.1
"""Number of tokens that wait at the gate, and the most seconds that each waits."""
PATIENCE = 90.0
SAMPLE = 40

Stream = Callable[..., Iterator[Any]]


def gated(stream: Stream, gate: str) -> Stream:
    """``Translator.stream`` with the gate in it."""

    def held(self: object, text: str, *more: Any, **named: Any) -> Iterator[Any]:
        steps = stream(self, text, *more, **named)
        if not text.startswith(HELD):
            yield from steps
            return
        entry = os.open(gate, os.O_RDONLY | os.O_NONBLOCK)
        last = next(steps)
        for count, step in enumerate(steps):
            yield last
            select.select([entry], [], [], PACE if count < SLOW_TOKENS else 0)
            last = step
        select.select([entry], [], [], PATIENCE)
        os.close(entry)
        yield last

    return held


def main() -> None:
    """Runs Streamlit with the arguments that follow the gate."""
    from streamlit.web import cli

    from explorer.app.server import surveys
    from transformer.translator import Translator

    gate, *arguments = sys.argv[1:]
    whole = surveys.sample
    surveys.sample = lambda name: whole(name)[:SAMPLE]
    Translator.stream = gated(Translator.stream, gate)  # type: ignore[method-assign]
    sys.argv = ["streamlit", *arguments]
    cli.main()


if __name__ == "__main__":
    main()
