"""Several rows of a head as one: the mean or the sum of what the model computed for each."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from explorer.lenses.words.reading import LIMIT, ReadView
from transformer.text.words import SPACE, Group
from transformer.view import AuditReport, Check, difference, difference_as_given


def rows_of(groups: Sequence[Group], positions: Sequence[int]) -> tuple[int, ...]:
    """The rows that hold tokens, each once; those of tokens that no row holds are left out.

    One row alone is none: there is nothing to put together.
    """
    rows = [
        row
        for row, group in enumerate(groups)
        if any(group.start <= position < group.stop for position in positions)
    ]
    if len(rows) < 2:
        return ()
    return tuple(rows)


def as_one(view: ReadView, rows: Sequence[int], together: str) -> ReadView:
    """A view of one row, the `mean` or the `sum` of several; a key that none sees is masked."""
    chosen = list(rows)
    first = view.rows[chosen[0]]
    last = view.rows[chosen[-1]]
    return replace(
        view,
        query_tokens=(f"{SPACE}{together} of {len(chosen)} rows",),
        predicted_tokens=None,
        weights=_joined(view.weights[chosen], together),
        mask=np.any(view.mask[chosen], 0, keepdims=True),
        hidden=_joined(view.hidden[chosen, None], together)[:, 0],
        scores=None,
        measured=None,
        sums=None,
        rows=(Group(first.start, last.stop, ""),),
        derived=True,
        report=partial(_audited, view, chosen, together),
    )


def _joined(rows: np.ndarray, together: str) -> np.ndarray:
    """(1, columns) the mean or the sum of (rows, columns)."""
    joined: np.ndarray = rows.sum(0, keepdims=True)
    if together == "mean":
        joined = joined / len(rows)
    return joined


def _audited(view: ReadView, rows: Sequence[int], together: str, drawn: ReadView) -> AuditReport:
    """The audit of the rows, and whether what is drawn is still their mean or sum."""
    expected = _joined(view.weights[rows], together)
    compared = difference
    if view.audit.unchecked:
        compared = difference_as_given
    error = compared(drawn.weights, expected, float(len(rows)))
    return view.audit.joined(AuditReport((Check("arrays drawn", error, LIMIT),)))
