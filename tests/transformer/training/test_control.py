"""A run under control: it waits while it is held, and the end of the input ends it."""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from waiting import until

from transformer.training.control import GO_ON, PAUSE, STOP, RunControl


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The ends for reading and for writing; no reader is left, who could take the lines of the next pipe."""
    ends, before = os.pipe(), threading.enumerate()
    yield ends
    with suppress(OSError):
        os.close(ends[1])
    for each in {*threading.enumerate()} - {*before}:
        each.join(60)
    os.close(ends[0])


def paused(stops: list[int], pipe: tuple[int, int]) -> tuple[threading.Thread, threading.Thread]:
    """Who reads the lines, and a run that waits because a line has told it to."""
    control = RunControl()
    reader = control.hold(lambda: stops.append(1), pipe[0])
    control.wait(lambda: bool(stops))
    os.write(pipe[1], PAUSE + b"\n")
    until(lambda: not control._free.is_set())
    thread = threading.Thread(target=control.wait, args=(lambda: bool(stops),), daemon=True)
    thread.start()
    return reader, thread


def test_a_run_that_is_held_goes_on_when_it_is_told(pipe: tuple[int, int]) -> None:
    stops: list[int] = []
    _, thread = paused(stops, pipe)
    os.write(pipe[1], b"nonsense\n" + GO_ON + b"\n")
    thread.join(60)
    assert not thread.is_alive()
    assert not stops


@pytest.mark.parametrize("by", ["line", "end"])
def test_a_run_that_is_held_ends_when_it_is_stopped_or_nothing_more_can_come(
    by: str, pipe: tuple[int, int]
) -> None:
    stops: list[int] = []
    threads = paused(stops, pipe)
    if by == "line":
        os.write(pipe[1], STOP + b"\n")
    os.close(pipe[1])
    for each in threads:
        each.join(60)
        assert not each.is_alive()
    assert stops


def test_a_signal_ends_a_run_that_is_held(pipe: tuple[int, int]) -> None:
    stops: list[int] = []
    _, thread = paused(stops, pipe)
    stops.append(1)
    thread.join(60)
    assert not thread.is_alive()
