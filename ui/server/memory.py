"""How much memory models need, and how much is free according to the system."""

from __future__ import annotations

import re
from pathlib import Path

from transformer.hub.files import check_config
from transformer.storage.description import parameter_count

_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")
UNKNOWN = 2**62
"""Stands for a number that no system file gives, and means no limit."""


def available() -> int:
    """Free bytes of the machine, or of the container if the container has fewer."""
    return min(_of_machine(), _of_container())


def of_model(directory: Path) -> int:
    """Bytes of a model in float32, known before loading; 0 if the model cannot be loaded."""
    try:
        return 4 * parameter_count(check_config(directory))
    except ValueError:
        return 0


def _of_machine() -> int:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _read(_MEMINFO), re.MULTILINE)
    return UNKNOWN if found is None else 1024 * int(found[1])


def _of_container() -> int:
    limit, used = _read(_GROUP / "memory.max").strip(), _read(_GROUP / "memory.current").strip()
    if not (limit.isdigit() and used.isdigit()):
        return UNKNOWN
    cached = re.search(r"^inactive_file (\d+)", _read(_GROUP / "memory.stat"), re.MULTILINE)
    return max(int(limit) - int(used) + (0 if cached is None else int(cached[1])), 0)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
