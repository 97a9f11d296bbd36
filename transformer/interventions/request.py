"""Which changes fit a request: each for itself, and none that contradicts another."""

from collections.abc import Sequence

from transformer.config import ModelConfig
from transformer.interventions.base import Intervention, InterventionError, RunShape

__all__ = ["RunShape", "carries_over", "check"]

_AMPLE = 2**31
"""Tokens of a text that is long enough for every change."""


def check(changes: Sequence[Intervention], shape: RunShape) -> None:
    """Raises InterventionError if a change does not fit the request, or if two contradict each
    other."""
    for change in changes:
        _check_output(change, shape.config)
        change.check(shape, changes)
    decisions = [decision for change in changes for decision in change.decides]
    for decision in decisions:
        if decisions.count(decision) > 1:
            raise InterventionError(f"Two changes decide {decision}; keep one of them.")


def carries_over(
    change: Intervention,
    config: ModelConfig,  # of the other model
    *,
    same_vocabulary: bool = False,  # whether its ids mean the same tokens
) -> bool:
    """Whether a change means the same in another model, whatever the text: that model has what the
    change is about, and its ids, if the change names any, mean the same tokens."""
    if change.named_ids and not same_vocabulary:
        return False
    shape = RunShape(config, typed=_AMPLE, source=_AMPLE, target=_AMPLE)
    try:
        _check_output(change, config)
        Intervention.check(change, shape, ())
    except InterventionError:
        return False
    return True


def _check_output(change: Intervention, config: ModelConfig) -> None:
    """InterventionError if a change steers an output, and the model writes none."""
    if change.steers and not config.writes:
        raise InterventionError(
            f"This model is an encoder alone, which writes no output to steer: {change}."
        )
