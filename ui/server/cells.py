"""Tables as CSV that no spreadsheet takes for a program."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of cells that spreadsheets take for a formula."""


def written(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV; a text that would be a formula begins with an apostrophe."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([_inert(cell) for cell in row] for row in rows)
    return file.getvalue()


def _inert(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell
