"""What is refused is refused in one sentence, soon, and before memory is taken."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

MEMORY = 100_000
"""KiB by which a refusal may let a process grow."""


@contextmanager
def refused(error: type[Exception], words: str) -> Iterator[None]:
    """What is done within is refused with these words, a regular expression."""
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    with pytest.raises(error, match=words) as caught:
        yield
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600
    assert time.process_time() - started < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MEMORY
