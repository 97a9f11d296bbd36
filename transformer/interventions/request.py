"""Which changes fit a request: each for itself, and none that contradicts another."""

from collections.abc import Iterator, Sequence

from transformer import interventions as do
from transformer.config import ModelConfig
from transformer.interventions.base import RunShape

__all__ = ["RunShape", "check", "fits"]

_AMPLE = 2**31
"""Tokens of a text that is long enough for every change."""


def check(changes: Sequence[do.Intervention], shape: RunShape) -> None:
    """Raises InterventionError if a change does not fit the request, or if two contradict each
    other."""
    for change in changes:
        _check_output(change, shape.config)
        change.check(shape, changes)
    decisions = [decision for change in changes for decision in _decides(change)]
    for decision in decisions:
        if decisions.count(decision) > 1:
            raise do.InterventionError(f"Two changes decide {decision}; keep one of them.")


def fits(change: do.Intervention, config: ModelConfig) -> bool:
    """Whether a model has what a change is about, whatever its text."""
    shape = RunShape(config, typed=_AMPLE, source=_AMPLE, target=_AMPLE)
    try:
        _check_output(change, config)
        do.Intervention.check(change, shape, ())
    except do.InterventionError:
        return False
    return all(token_id < n_pieces for token_id, n_pieces in _ids(change, config))


def _ids(change: do.Intervention, config: ModelConfig) -> Iterator[tuple[int, int]]:
    """The ids that a change names, each with the number of pieces that there are."""
    match change:
        case do.Choose(token=int(token)) | do.Forbid(token=int(token)):
            yield token, config.n_target_pieces
        case do.EditSource(token=int(token)):
            yield token, config.vocab_size
        case do.Prefix(token_ids=token_ids):
            ids = (token for token in token_ids if isinstance(token, int))
            yield from ((token_id, config.n_target_pieces) for token_id in ids)


def _check_output(change: do.Intervention, config: ModelConfig) -> None:
    """InterventionError if a change steers an output, and the model writes none."""
    steers = isinstance(change, do.Choose | do.Forbid | do.Prefix)
    if steers and not config.writes:
        raise do.InterventionError(
            f"This model is an encoder alone, which writes no output to steer: {change}."
        )


def _decides(change: do.Intervention) -> Iterator[str]:
    """The tokens that a change decides, in words."""
    match change:
        case do.Choose(step=step):
            yield f"step {step + 1}"
        case do.Prefix(token_ids=token_ids):
            for step in range(len(token_ids)):
                yield f"step {step + 1}"
        case do.EditSource(position=position) | do.DropSource(position=position):
            yield f"source token {position + 1}"
