"""Whether a translation covers its source: its length, and what of the source its cross-attention reads.

`benchmarks/coverage.py` measures the limits. Another pair of languages may need fewer tokens than it reads,
so that length alone says something only when it is far too short; what no head reads, for any model.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from transformer.config import AttentionKind
from transformer.trace import AttentionTrace

NOTE = "The translation may leave out the end."
FEWEST = 6
"""Source tokens from which on anything is said."""
SHORT, FAR_TOO_SHORT, LONG = 0.8, 0.5, 1.4
"""Target tokens per source token: fewer than usual, too few whatever is read, and so many as in a loop."""
READ = 0.15
"""A source token is read if any head of the last layers gives it this weight at any step."""
LAYERS = 2
SOME, MANY = 0.1, 0.2
"""Share of unread source tokens that is named in a short translation, and in any."""


def leaves_out(
    read: int,  # source tokens, without special ones
    written: int,  # target tokens, without special ones
    unread: Callable[[], float | None],  # share of the source that is not read; None if nobody can say
) -> bool:
    """Whether a translation covers much less than its source."""
    length = written / max(read, 1)
    if read < FEWEST or length < FAR_TOO_SHORT:
        return read >= FEWEST
    share = unread()
    return share is not None and share >= (SOME if length < SHORT else MANY)


def unread(
    trace: AttentionTrace,
    first: int,  # the first source token that counts; those before it are instructions
    last: int,  # the one after the last that counts
) -> float:
    """Share of the source tokens to which no head of the last layers of cross-attention gives weight."""
    count = len(trace.layers[AttentionKind.CROSS])
    layers = range(max(count - LAYERS, 0), count)
    most = [trace.weights(AttentionKind.CROSS, layer).max(axis=(0, 1)) for layer in layers]
    return float((np.max(most, axis=0)[first:last] < READ).mean())
