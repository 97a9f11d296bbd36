"""PyTorch's global random generator, borrowed for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_LOCK = threading.Lock()
"""There is one global generator; one user at a time, so that a seed fixes what is drawn."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Sets the CPU's global generator to a seed; afterwards it continues as if nothing had been drawn.

    Threads that draw in such a context wait for one another.
    """
    with _LOCK, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
