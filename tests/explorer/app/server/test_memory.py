"""Garbage is collected between visits, not after every run; freed memory goes back to the system."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import tomllib
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

from explorer.app.server.memory import Collector


class Knot:
    """An object in a circle, which only a collection finds."""

    def __init__(self) -> None:
        self.me = self


_FREES = """
import os, sys
from threading import Barrier, Thread
import numpy as np
from explorer.app.server.memory import give_back

def held():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

def work(kept):
    together.wait()
    for _ in range(20):
        tensors = [np.ones(2**18) for _ in range(20)]  # 40 MiB
        kept.append(np.ones(2**12))

if "give back" in sys.argv:
    give_back()
np.ones(2**21)  # 16 MiB: once they are freed, glibc keeps what is smaller
before, kept, together = held(), [], Barrier(4)
threads = [Thread(target=work, args=(kept,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(held() - before)
"""


@pytest.fixture
def by_hand() -> Iterator[None]:
    """Python itself does not collect."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("by_hand")
def test_garbage_goes_once_nobody_uses_the_server_each_time_anew():
    collector = Collector(quiet=0.01)
    for _ in range(3):
        gone = weakref.ref(Knot())
        assert gone() is not None
        collector.used()
        until(lambda found=gone: found() is None)


@pytest.mark.usefixtures("by_hand")
def test_nothing_is_collected_while_the_server_is_used():
    collector = Collector(quiet=60)
    there = weakref.ref(Knot())
    for _ in range(100):
        collector.used()
    assert there() is not None


@pytest.mark.usefixtures("by_hand")
def test_a_server_that_is_never_quiet_is_collected_in_the_end():
    collector = Collector(quiet=60, latest=0.01)
    gone = weakref.ref(Knot())
    collector.used()
    until(lambda: gone() is None)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about glibc")
def test_what_many_threads_freed_goes_back_to_the_system() -> None:
    def kept(*arguments: str) -> float:
        own = {
            name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))
        }
        command = [sys.executable, "-c", _FREES, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=own)
        return float(done.stdout)

    assert kept("give back") < 12 < 30 < kept()


def test_streamlit_collects_nothing_itself():
    path = Path(__file__).parents[4] / ".streamlit" / "config.toml"
    config = tomllib.loads(path.read_text(encoding="utf-8"))
    assert config["runner"]["postScriptGC"] is False
