"""Memory that models need, free memory according to the system, and how what is freed goes back to
it."""

import ctypes
import os
from functools import cache

from transformer.storage.memory import free_bytes

UNKNOWN = 2**62
"""Stands for a number that no system file gives, and means no limit."""
_OWN_PAGES = (-3, 2**20)
_SPARE = (-1, 4 * 2**20)
"""Parameters of glibc's `mallopt`: from how many bytes on memory has pages of its own, which go
back to the system at once, and how many free bytes the end of a pool keeps."""


def available() -> int:
    """Free bytes of the machine, or of the container if the container has fewer."""
    free = free_bytes()
    return UNKNOWN if free is None else free


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
