"""Whether a model fits into the memory of this machine, said before any of it is read."""

from pathlib import Path

from transformer.config import ModelConfig
from transformer.storage.description import parameter_count
from transformer.storage.files import CheckpointError

BYTES = 4
"""A number is read as float32."""
ROOM = 256 * 2**20
"""Bytes that reading takes besides."""
_MEMORY = Path("/proc/meminfo")


def check_memory(path: Path, config: ModelConfig) -> None:
    """CheckpointError, with both numbers, if a model needs more memory than there is."""
    needs = needed_bytes(config)
    free = free_bytes()
    if free is not None and needs + ROOM > free:
        raise CheckpointError(
            f"{path} needs {_gigabytes(needs)} of memory, and {_gigabytes(free)} are free."
        )


def needed_bytes(config: ModelConfig) -> int:
    """Bytes of a model's weights while it is opened."""
    return BYTES * parameter_count(config)


def free_bytes() -> int | None:
    """Bytes of memory that may be taken; None where the system does not say it."""
    try:
        lines = _MEMORY.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return 1024 * int(value.split()[0])
    return None


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
