"""Which rows of a large table run on every change: the others run with `pytest -m nightly`."""

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(rows: Iterable[Any], every: int) -> list[Any]:
    """The rows as parameters of a test; one of so many runs on every change.

    Where rows are pairs, `every` should have no factor in common with the length of either side, so
    that what runs meets each page and each model.
    """
    return [
        row
        if i % every == 0
        else pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.nightly)
        for i, row in enumerate(rows)
    ]
