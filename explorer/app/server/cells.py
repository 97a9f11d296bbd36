"""Tables as CSV that no spreadsheet takes for a program."""

import csv
import io
from collections.abc import Iterable, Sequence

_FORMULAS = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r")
"""Beginnings of cells that spreadsheets take for a formula."""
MARK = "\ufeff"
"""By this first character spreadsheets know that a file is UTF-8."""


def written(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV; a text that would be a formula begins with an apostrophe."""
    file = io.StringIO()
    usual = csv.writer(file, lineterminator="\n")
    # Python 3.11 leaves a lone carriage return unquoted, and readers then begin another row there.
    quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        cells = [
            f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell
            for cell in row
        ]
        (quoted if any("\r" in str(cell) for cell in cells) else usual).writerow(cells)
    return MARK + file.getvalue()
