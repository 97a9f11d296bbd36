"""How sure a model is of what it wrote, beside what is usual for this model. No PyTorch."""

from collections.abc import Iterable, Sequence

import numpy as np

RARE = 0.2
"""The share of a model's outputs on its sample that count as unusually unsure."""


def mean_log_prob(log_probs: Sequence[float]) -> float:
    """The mean log-probability of an output's tokens, its end included, in nats."""
    return float(np.mean(log_probs))


def unsure_below(outputs: Iterable[Sequence[float]]) -> float:
    """The mean log-probability below which the least sure outputs of some lie, a share `RARE`, in
    nats.

    ValueError if there are none.
    """
    means = [mean_log_prob(log_probs) for log_probs in outputs if len(log_probs)]
    if not means:
        raise ValueError("Nothing was written, so nothing is usual.")
    return float(np.quantile(means, RARE))
