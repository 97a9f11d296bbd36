"""What the app keeps, and when it lets go: stores, models in memory, freed memory."""

import os
import platform
import subprocess
import sys
from typing import NamedTuple

import pytest

from explorer.app.maps.run_export import trace_file
from explorer.app.server import memory, models, stores
from explorer.app.server.stores import Recent, Residents, bytes_of
from transformer import Capture


def test_a_store_keeps_the_values_used_last_as_many_as_fit_and_always_the_newest(monkeypatch):
    store = Recent[str](2)
    for key in ("a", "b", "a", "c"):
        assert store.get(key, lambda key=key: key.upper()) == key.upper()
    assert [key in store for key in "abc"] == [True, False, True]
    monkeypatch.setattr(stores, "MOST_BYTES", 100)
    sized = Recent[bytes](10, len)
    steps = [("a", 40, "a"), ("b", 40, "ab"), ("a", 40, "ab"), ("c", 40, "ac"), ("d", 500, "d")]
    for key, size, there in steps:
        sized.get(key, lambda size=size: bytes(size))
        assert [each for each in "abcde" if each in sized] == [*there]


def test_what_a_run_holds_counts_the_residual_stream_and_a_file_that_holds_too_much_is_refused(
    translator, monkeypatch: pytest.MonkeyPatch
):
    plain = translator.translate("one two three")
    full = translator.translate("one two three", capture=Capture(residual=True))
    assert plain.attention.nbytes < bytes_of(plain) < bytes_of(full)
    assert bytes_of(translator.translate("one", capture=False)) == 0
    monkeypatch.setattr(models, "LARGEST", 1000)
    with pytest.raises(ValueError, match="the limit for one visit"):
        models.open_file("run.npz", trace_file(plain, None))


class Model:
    """Stands in for a translator: can be counted, and found while somebody holds it."""


class Handle(NamedTuple):
    name: str
    needs: int


def resident(residents: Residents, name: str, needed: int = 0) -> Model:
    return residents.get(Handle(name, needed), Model)


def names(residents: Residents) -> list[str]:
    return sorted(each.name for each in residents.alive)


def test_the_model_used_longest_ago_leaves_with_all_that_was_made_with_it_but_not_in_use():
    residents = Residents(2)
    store = Recent[str](10)
    for name in ("a", "b"):
        resident(residents, name)
        store.get((name, 1), lambda: "made")
    resident(residents, "a")
    resident(residents, "c")
    assert names(residents) == ["a", "c"]
    assert [(name, 1) in store for name in "ab"] == [True, False]
    residents = Residents(1)
    used = resident(residents, "a")
    resident(residents, "b")
    assert names(residents) == ["a", "b"]
    assert resident(residents, "a") is used
    del used
    resident(residents, "b")
    assert names(residents) == ["b"]


def test_models_leave_where_memory_is_short_and_one_that_never_fits_is_refused(monkeypatch):
    residents = Residents(4)
    monkeypatch.setattr(memory, "available", lambda: 100 - 60 * len(names(residents)))
    for name in ("a", "b"):
        resident(residents, name, 60)
        assert names(residents) == [name]
    with pytest.raises(ValueError, match="c needs 200 bytes of memory, but only 100 bytes is free"):
        resident(residents, "c", 200)
    assert names(residents) == []


def test_free_memory_is_what_the_package_says_or_has_no_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 5_000)
    assert memory.available() == 5_000
    monkeypatch.setattr(memory, "free_bytes", lambda: None)
    assert memory.available() == memory.UNKNOWN


# --- freed memory --------------------------------------------------------------------------------

_FREES = """
import os, sys
from threading import Barrier, Thread
import numpy as np
from explorer.app.server.memory import give_back

def held():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

def work():
    together.wait()
    for _ in range(20):
        tensors = [np.ones(2**18) for _ in range(20)]  # 40 MiB
        kept.append(np.ones(2**12))

if "give back" in sys.argv:
    give_back()
np.ones(2**21)  # 16 MiB: once they are freed, glibc keeps what is smaller
before, kept, together = held(), [], Barrier(4)
threads = [Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(held() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about glibc")
def test_what_many_threads_freed_goes_back_to_the_system() -> None:
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MALLOC_", "GLIBC_"))
    }

    def left(*arguments: str) -> float:
        command = [sys.executable, "-c", _FREES, *arguments]
        return float(
            subprocess.run(command, capture_output=True, text=True, check=True, env=own).stdout
        )

    assert left("give back") < 12 < 30 < left()
