"""Steps of a search as a reader sees them, and what a caller wants recorded."""

from __future__ import annotations

from collections.abc import Sequence

from transformer.decode.steps import Hypothesis, Step
from transformer.runs.translation import Alternative, DecodeStep
from transformer.runs.wording import Wording
from transformer.trace.recorder import Capture


def path(wording: Wording, steps: Sequence[Step], hypothesis: Hypothesis) -> tuple[DecodeStep, ...]:
    """The steps of the best hypothesis: each token, with the alternatives of the row that it extends."""
    return tuple(
        decode_step(wording, step, token, log_prob, parent)
        for step, token, log_prob, parent in zip(
            steps, hypothesis.token_ids, hypothesis.log_probs, hypothesis.parents, strict=False
        )
    )


def decode_step(wording: Wording, step: Step, token: int, log_prob: float, parent: int) -> DecodeStep:
    """One token of one hypothesis, which extends row ``parent``."""
    ids = step.alternative_ids[parent]
    found = zip(wording.pieces(ids), ids, step.alternative_log_probs[parent], strict=True)
    best = tuple(Alternative(*each) for each in found)
    return DecodeStep(wording.pieces([token])[0], token, log_prob, best, parent, step.forced[parent])


def captured(capture: bool | Capture) -> Capture | None:
    """Parts to record; None for nothing."""
    if isinstance(capture, bool):
        return Capture() if capture else None
    return capture
