"""The seam of all second ways: numbers that are drawn against the same numbers computed by other code.

A sum that comes out right proves a total, not which token, head, row or key holds a part. So the check gets
the arrays that a figure receives, and computes their cells again: every one where that is cheap, otherwise
the largest, which an exchange must move, and others that the trace's hash chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from transformer.trace.report import AuditReport, Check

P = TypeVar("P")
Numbers = NDArray[np.floating[Any]]
FEW = 8
"""Cells that are computed again, of more."""


def equal(
    name: str,  # of the measure
    drawn: Numbers,  # what a figure receives
    expected: Numbers,  # the same, computed a second way
    limit: float,  # largest difference, as a share of the largest number
) -> AuditReport:
    """Every number against a second computation; numbers that are none must be none in both."""
    told = (f"Every number of “{name}” was computed a second way.",)
    if drawn.shape != expected.shape or (np.isfinite(drawn) != np.isfinite(expected)).any():
        return AuditReport((Check(name, float("inf"), limit),), told=told)
    known = np.isfinite(drawn)
    return AuditReport((Check(name, _apart(drawn[known], expected[known], drawn[known]), limit),), told=told)


def compared(
    name: str,  # of the measure
    places: Sequence[P],  # what each number stands for
    drawn: Sequence[float] | Numbers,  # the numbers, in the same order
    again: Callable[[list[P]], Sequence[float]],  # computes those of some places a second way
    seed: int,  # the hash of the trace
    limit: float,  # largest difference, as a share of the largest number
    count: int | None = FEW,  # how many cells; None for all
    claim: str = "from a {{}} trace, {count} of {all} numbers computed again",  # of the badge
    floor: float = 1e-6,  # the least number that differences are a share of
) -> AuditReport:
    """The largest numbers and some others against a second computation."""
    values = np.asarray(drawn, np.float64)
    chosen = _chosen(values, seed, len(values) if count is None else count)
    made = np.asarray(again([places[at] for at in chosen]), np.float64)
    sizes = {"count": f"{len(chosen):,}", "all": f"{len(values):,}"}
    told = f"Of “{name}”, {sizes['count']} of {sizes['all']} numbers were computed again, the largest first."
    check = Check(name, _apart(values[chosen], made, values, floor), limit)
    said = claim.format(**sizes) if len(chosen) < len(values) else ""
    return AuditReport((check,), told=(told,), claim=said)


def _chosen(values: Numbers, seed: int, count: int) -> list[int]:
    """Places of half the largest numbers, and of others by the seed."""
    order = np.argsort(-np.abs(values), kind="stable")
    most = order[: -(-count // 2)]
    rest = np.random.default_rng(seed).permutation(order[len(most) :])
    return [int(at) for at in (*most, *rest[: count - len(most)])]


def _apart(drawn: Numbers, made: Numbers, all_drawn: Numbers, floor: float = 1e-6) -> float:
    """The largest difference, as a share of the largest number."""
    if not len(drawn):
        return 0.0
    scale = max(float(np.abs(all_drawn).max()), float(np.abs(made).max()), floor)
    return float(np.abs(drawn - made).max()) / scale
