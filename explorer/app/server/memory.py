"""Memory that models need, free memory according to the system, and how what is freed goes back to
it."""

import ctypes
import os
import re
from functools import cache
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")
UNKNOWN = 2**62
"""Stands for a number that no system file gives, and means no limit."""
_OWN_PAGES = (-3, 2**20)
_SPARE = (-1, 4 * 2**20)
"""Parameters of glibc's `mallopt`: from how many bytes on memory has pages of its own, which go
back to the system at once, and how many free bytes the end of a pool keeps."""


def available() -> int:
    """Free bytes of the machine, or of the container if the container has fewer."""
    machine = re.search(r"^MemAvailable:\s+(\d+) kB", _read(_MEMINFO), re.MULTILINE)
    free = UNKNOWN if machine is None else 1024 * int(machine[1])
    limit = _read(_GROUP / "memory.max").strip()
    used = _read(_GROUP / "memory.current").strip()
    if limit.isdigit() and used.isdigit():
        cached = re.search(r"^inactive_file (\d+)", _read(_GROUP / "memory.stat"), re.MULTILINE)
        free = min(free, max(int(limit) - int(used) + (0 if cached is None else int(cached[1])), 0))
    return free


@cache
def give_back() -> None:
    """Makes glibc give freed tensors back to the system; without glibc, nothing.

    By itself, once larger tensors were freed, it gives tensors pages of their own only from 32 MiB
    on, and keeps up to 64 MiB in each of many pools.
    """
    mallopt = getattr(ctypes.CDLL(None) if os.name == "posix" else None, "mallopt", None)
    if mallopt is not None:
        for parameter in (_OWN_PAGES, _SPARE):
            mallopt(*parameter)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
