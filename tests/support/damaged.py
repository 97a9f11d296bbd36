"""Content that no reader of exported files may accept: JSON texts, and whole files."""

import io
from collections.abc import Callable

import numpy as np

TEXTS = {
    "empty": b"",
    "cut": b"{",
    "no entries": b"{}",
    "list": b"[]",
    "null": b"null",
    "deep list": b"[" * 100_000,
    "deep": b'{"a":' * 50_000,
    "deep object": b'{"version": 3, "run": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    "no UTF-8": b"\xff\xfe",
    "NaN": b'{"format": "attention-explorer/view", "version": 1, "run": NaN}',
    "long number": b'{"version": 1' + b"0" * 5_000 + b"}",
    "large": b'{"a": "' + b"x" * 5 * 2**20 + b'"}',
}


def _bomb() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **{str(i): np.zeros(2**24, np.float32) for i in range(5)})
    return file.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "zip": lambda: b"PK\x03\x04 nothing",
    "zeros": lambda: b"\x00" * 1000,
    "random": lambda: np.random.default_rng(0).bytes(5000),
    "bomb": _bomb,
}
"""Made when they are asked for."""
