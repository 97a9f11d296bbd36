"""Whether a model fits into the memory of this machine, said before any of it is read."""

import re
from pathlib import Path

from transformer.config import ModelConfig
from transformer.storage.description import numbers_held
from transformer.storage.files import CheckpointError

BYTES = 4
"""A number is read as float32."""
ROOM = 256 * 2**20
"""Bytes that reading takes besides."""
_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def check_memory(path: Path, config: ModelConfig) -> None:
    """CheckpointError, with both numbers, if a model needs more memory than there is."""
    needs = needed_bytes(config)
    free = free_bytes()
    if free is not None and needs + ROOM > free:
        raise CheckpointError(
            f"{path} needs {_gigabytes(needs)} of memory, and {_gigabytes(free)} are free."
        )


def needed_bytes(config: ModelConfig) -> int:
    """Bytes of an opened model."""
    return BYTES * numbers_held(config)


def free_bytes() -> int | None:
    """Bytes of memory that may be taken, of the machine, or of the container if that has fewer;
    None where the system says neither."""
    machine = re.search(r"^MemAvailable:\s+(\d+) kB", _read(_MEMINFO), re.MULTILINE)
    free = [] if machine is None else [1024 * int(machine[1])]
    limit = _read(_GROUP / "memory.max").strip()
    used = _read(_GROUP / "memory.current").strip()
    if limit.isdigit() and used.isdigit():
        # the system takes back what it keeps of files as soon as somebody needs the memory
        cached = re.search(r"^inactive_file (\d+)", _read(_GROUP / "memory.stat"), re.MULTILINE)
        returned = int(cached[1]) if cached else 0
        free.append(max(int(limit) - int(used) + returned, 0))
    return min(free, default=None)


def _read(path: Path) -> str:
    """What a file of the system says; empty where there is none."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
