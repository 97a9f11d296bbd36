"""Short text of a value: its names and sizes on at most three lines, never the numbers that it holds."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

LINES, WIDTH, LONGEST = 3, 100, 48
"""Most lines, letters of a line, and letters of one value."""


class Brief:
    """A value that may hold a whole run, and prints in three lines."""

    def __repr__(self) -> str:
        names = (name for name in vars(self) if not name.startswith("_"))
        parts = ", ".join(f"{name}={_said(getattr(self, name))}" for name in names)
        text = f"{type(self).__name__}({parts})"
        return textwrap.fill(text, WIDTH, max_lines=LINES, placeholder=" …)", break_on_hyphens=False)


def _said(value: Any) -> str:
    """A value in a few letters: short ones as they are, large ones by their size."""
    if hasattr(value, "shape"):
        return f"{type(value).__name__} {'×'.join(map(str, value.shape)) or 'of one number'}"
    if isinstance(value, Enum):
        return repr(value.value)
    if isinstance(value, int | float | None):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= LONGEST else f"{value[:LONGEST]}…")
    if isinstance(value, Mapping | Sequence | frozenset | set):
        return f"{len(value)} items"
    return type(value).__name__
