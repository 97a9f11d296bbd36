"""The power of n with which a cost grows: a straight line through logarithms. No PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from transformer.runs.bootstrap import Cell, rounded

_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""The 97.5th percentiles of Student's distribution for 1, 2, … degrees of freedom."""
_NORMAL = 1.96


def exponent(lengths: Sequence[float], costs: Sequence[float]) -> Cell | None:
    """The slope of log cost against log length by least squares, with its 95 % interval.

    The interval follows from the scatter around the line: noise, and a cost that is no power of n. None for
    fewer than three lengths, or if a cost is not positive.
    """
    if len(lengths) < 3 or min(costs) <= 0:
        return None
    x, y = np.log(np.array(lengths, np.float64)), np.log(np.array(costs, np.float64))
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y / (x @ x))
    freedom = len(lengths) - 2
    error = math.sqrt(float(((y - slope * x) ** 2).sum()) / freedom / float(x @ x))
    reach = error * (_STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _NORMAL)
    return {"value": rounded(slope), "low": rounded(slope - reach), "high": rounded(slope + reach)}


def meeting(lengths: Sequence[float], one: Sequence[float], other: Sequence[float]) -> float | None:
    """The last length at which a cost rises above another, between measured lengths on logarithmic axes.

    None if it does not, within the measured lengths.
    """
    gaps = [math.log(a / b) for a, b in zip(one, other, strict=True)]
    for i in range(len(gaps) - 1, 0, -1):
        before, after = gaps[i - 1], gaps[i]
        if before <= 0 < after:
            share = -before / (after - before)
            return float(lengths[i - 1] * (lengths[i] / lengths[i - 1]) ** share)
    return None
