"""What figures read off a head: how its rows are named, what it hides, what its rows sum to."""

from __future__ import annotations

import numpy as np

from explorer.figures.base import labels
from transformer.view import HeadMap


def named(view: HeadMap) -> str:
    """ "read" or "predicted", the token that names rows: as the view says, else by its kind."""
    usual = "predicted" if view.kind == "cross" and view.predicted_tokens is not None else "read"
    return str(getattr(view, "named", usual))


def hidden(view: HeadMap) -> np.ndarray:
    """The weight of each row that lies on hidden columns; zeros if the view hides nothing."""
    mass = getattr(view, "hidden", None)
    return np.zeros(len(view.query_tokens), dtype=np.float32) if mass is None else np.asarray(mass)


def cell_names(view: HeadMap) -> tuple[list[str], list[str]]:
    """The names of the rows and of the columns, in words."""
    return labels.row_names(view.query_tokens, view.predicted_tokens), labels.key_names(view.key_tokens)


def row_sums(view: HeadMap) -> list[str]:
    """The sum of each row: `1.00`, or with hidden columns `0.88 + 0.12`."""
    aside = hidden(view)
    return [
        f"{total:.2f} + {mass:.2f}" if aside.any() else f"{total:.2f}"
        for total, mass in zip(view.weights.sum(1), aside, strict=True)
    ]
